// Members choose an algorithm each by itself, and all choose the same: 2 to 64 of them, each with
// arrays and answers of its own, which share the agreed words alone. Random calls, and what no
// member may choose.

#include "coll/selection.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "coll/algorithms/symmetric_broadcast.hpp"
#include "coll/algorithms/symmetric_reduction.hpp"
#include "coll/collectives.hpp"
#include "coll/pieces.hpp"
#include "unit/check.hpp"

using namespace mpress;
using engine::AgreedCall;
using engine::AlgorithmId;
using engine::Answer;
using engine::Form;

namespace {

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t end) { return random() % end; }
bool chance(Random& random, unsigned of) { return below(random, of) == 0; }

namespace collectives = engine::collectives;

constexpr engine::Collective calls[] = {
    collectives::alltoall,
    collectives::alltoallv,
    collectives::gatherv,
    collectives::allgather,
    collectives::allgatherv,
    collectives::neighbor_alltoallv,
    collectives::bcast,
    collectives::allreduce,
    collectives::reduce,
    collectives::reduce_scatter,
    collectives::reduce_scatter_block,
};

/// What members know alike of a call: the words that they told each other, its arguments, the team.
struct Words {
  AgreedCall call;
  std::vector<std::int64_t> counts;
};

Words random_words(Random& random, int ranks) {
  Words words;
  AgreedCall& call = words.call;
  call.call = calls[below(random, std::size(calls))];
  call.form = static_cast<Form>(below(random, 8) < 6 ? 0 : 1 + below(random, 2));
  call.team.ranks = ranks;
  call.team.hosts = chance(random, 4) ? 2 : 1;
  call.team.between_devices =
      chance(random, 2) ? link::Kind::peer : link::kind_at(below(random, 3));
  call.team.has_shared_memory = !chance(random, 6);
  call.team.may_see_devices = !chance(random, 6);
  call.team.may_have_kernels = !chance(random, 8);
  call.team.most_offered = chance(random, 8) ? 2 : 8;
  call.root = static_cast<int>(below(random, static_cast<std::uint64_t>(ranks)));
  call.has_topology = call.call.family == Family::neighbor;
  const std::uint64_t elements = std::uint64_t{1} << below(random, 27);
  std::uint64_t count = elements + (chance(random, 2) ? below(random, 97) : 0);
  if (call.call.op == trace::Op::reduce_scatter_block) count *= static_cast<std::uint64_t>(ranks);
  if (call.call.reduces && !chance(random, 10)) {
    const auto type = chance(random, 2) ? ElementType::f32 : ElementType::f64;
    call.reduction = {{codec::Combine::sum}, type, count, 1};
    std::uint64_t left = count;
    for (int i = 0; i < ranks; ++i) {
      const bool is_last = i + 1 == ranks;
      words.counts.push_back(static_cast<std::int64_t>(is_last ? left : below(random, left + 1)));
      left -= static_cast<std::uint64_t>(words.counts.back());
    }
  }
  if (!words.counts.empty()) call.result_counts = engine::Numbers(words.counts.data());
  call.bytes = call.call.has_own_counts ? 0 : 4 * count;
  call.longest = call.call.op == trace::Op::allgatherv ? 2 * call.bytes : call.bytes;
  call.is_short = call.call.reduces && chance(random, 4);
  call.is_reproducible = call.call.reduces && chance(random, 10);
  constexpr Codec codecs[] = {Codec::none, Codec::automatic, Codec::szp, Codec::zfp};
  call.codec = codecs[below(random, std::size(codecs))];
  const bool pays = chance(random, 2);
  call.encodes = (pays && !call.call.has_own_counts) || call.is_reproducible;
  call.encodes_pairs = pays && call.call.has_own_counts;
  call.on_devices = call.team.may_see_devices && chance(random, 2);
  return words;
}

/// A member's copy of the words, with arrays of its own: some members call the large forms.
class Member {
 public:
  Member(Random& random, engine::AttemptsOfTeam& attempts, const Words& words)
      : selection(attempts),
        wide_(words.counts),
        narrow_(words.counts.begin(), words.counts.end()) {
    padding_.resize(below(random, 4096));
    selection.call = words.call;
    if (words.counts.empty()) return;
    selection.call.result_counts =
        chance(random, 2) ? engine::Numbers(wide_.data()) : engine::Numbers(narrow_.data());
  }

  engine::Selection selection;

  /// Its buffers, its clock and its links decide what it offers.
  Answer own_answer(Random& random) const {
    constexpr Answer answers[] = {Answer::accepted, Answer::accepted, Answer::not_yet,
                                  Answer::not_now, Answer::never};
    return answers[below(random, std::size(answers))];
  }

 private:
  std::vector<std::byte> padding_;  ///< so that addresses differ
  std::vector<std::int64_t> wide_;
  std::vector<int> narrow_;
};

bool are_alike(const std::vector<std::unique_ptr<Member>>& members) {
  return std::ranges::all_of(members, [&](const auto& member) {
    return member->selection.chosen() == members[0]->selection.chosen();
  });
}

/// Does an offered algorithm get what its operation needs of the words?
void check_parts(const AgreedCall& call, AlgorithmId chosen) {
  if (chosen == AlgorithmId::symmetric_broadcast) {
    const auto begins = engine::broadcast_parts(call);
    CHECK(static_cast<std::uint64_t>(begins.back()) * engine::broadcast_word_bytes == call.bytes);
  }
  if (chosen != AlgorithmId::symmetric_reduction) return;
  const engine::SymmetricParts parts(call);
  CHECK(std::ranges::is_sorted(parts.begins) && parts.begins.back() == call.reduction->count);
  CHECK(parts.rows.empty() ||
        static_cast<std::uint64_t>(parts.rows.back()) == call.reduction->count);
}

bool is_by_kernels(AlgorithmId chosen) { return chosen <= AlgorithmId::symmetric_reduction; }

/// What no member may choose, whatever the others have said.
void check_choice(const AgreedCall& call, AlgorithmId chosen) {
  const bool is_offered = chosen <= engine::last_offered;
  if (is_offered) {
    CHECK(call.form != Form::persistent && !call.has_topology && !call.is_reproducible);
    CHECK(call.team.hosts == 1 && call.team.has_shared_memory && call.team.may_have_kernels);
    CHECK(!call.encodes || call.codec == Codec::none);
    CHECK(call.encodes || call.on_devices);
    CHECK(call.team.most_offered >= engine::offer_words);
    CHECK(call.call.reduces == (chosen >= AlgorithmId::symmetric_reduction));
  }
  if (chosen == AlgorithmId::symmetric_broadcast) CHECK(call.call.family == Family::bcast);
  if (call.encodes && !is_offered) {
    CHECK(chosen == (call.call.reduces   ? AlgorithmId::reduction_by_blocks
                     : call.has_topology ? AlgorithmId::neighbours
                                         : AlgorithmId::blocks));
  }
  if (call.is_short && !call.encodes && !is_by_kernels(chosen))
    CHECK(chosen == AlgorithmId::by_mpi);
  if (!call.encodes && !call.on_devices) {
    CHECK(chosen == (call.encodes_pairs ? AlgorithmId::pairs : AlgorithmId::by_mpi));
  }
}

/// Members of one team make many calls, of which some are refused. Returns how many were served by
/// each algorithm.
void play(Random& random, int ranks, std::vector<std::uint64_t>& served) {
  std::vector<engine::AttemptsOfTeam> attempts(static_cast<std::size_t>(ranks));
  for (int number = 0; number < 64; ++number) {
    const Words words = random_words(random, ranks);
    std::vector<std::unique_ptr<Member>> members;
    for (int rank = 0; rank < ranks; ++rank) {
      members.push_back(
          std::make_unique<Member>(random, attempts[static_cast<std::size_t>(rank)], words));
      members.back()->selection.begin();
    }
    CHECK(are_alike(members));
    check_choice(members[0]->selection.call, members[0]->selection.chosen());
    while (members[0]->selection.is_offered()) {
      check_parts(members[0]->selection.call, members[0]->selection.chosen());
      const bool is_to_be_encoded = words.call.codec != Codec::none && chance(random, 8);
      Answer answer = Answer::accepted;
      for (const auto& member : members) answer = std::max(answer, member->own_answer(random));
      if (chance(random, 2)) answer = Answer::accepted;
      bool is_decided = false;
      for (const auto& member : members) {
        if (is_to_be_encoded) {
          member->selection.encode();
        } else {
          is_decided = member->selection.conclude(answer);
        }
      }
      CHECK(are_alike(members));
      const AlgorithmId chosen = members[0]->selection.chosen();
      check_choice(members[0]->selection.call, chosen);
      if (is_to_be_encoded) CHECK(chosen > engine::last_offered && chosen < AlgorithmId::pairs);
      if (is_decided) break;
    }
    ++served[static_cast<std::size_t>(members[0]->selection.chosen())];
  }
}

/// Nothing that changes while a member runs has a say.
void has_no_memory() {
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    const Words words = random_words(random, 2 + static_cast<int>(below(random, 63)));
    const AlgorithmId first = engine::first_that_applies(words.call);
    for (std::size_t at = 0; at < engine::algorithms().size(); ++at) {
      engine::algorithms()[at].why_not(random_words(random, 3).call);
    }
    CHECK(engine::first_that_applies(words.call) == first);
  }
}

/// One that is refused is offered at the 1st, 3rd, 6th, 11th ... of the calls that follow.
void refused_less_and_less_often() {
  engine::Attempts attempts;
  std::vector<int> offered;
  attempts.note(Answer::not_now);
  for (int call = 1; call <= 40; ++call) {
    if (attempts.next()) offered.push_back(call);
  }
  CHECK((offered == std::vector<int>{1, 3, 6, 11, 20, 37}));
  attempts.note(Answer::not_yet);
  CHECK(attempts.next() && !attempts.has_failed());
  attempts.note(Answer::accepted);
  CHECK(attempts.next());
  attempts.note(Answer::never);
  CHECK(!attempts.next());
}

/// A refused algorithm is not offered at the next call of such a size, and is at the one after.
void refusals_are_kept() {
  engine::AttemptsOfTeam attempts;
  std::vector<AlgorithmId> chosen;
  for (int number = 0; number < 4; ++number) {
    engine::Selection selection(attempts);
    selection.call.call = calls[0];
    selection.call.team = {.ranks = 4,
                           .has_shared_memory = true,
                           .may_see_devices = true,
                           .may_have_kernels = true,
                           .most_offered = engine::offer_words};
    selection.call.bytes = selection.call.longest = 64 << 10;
    selection.call.on_devices = true;
    selection.begin();
    chosen.push_back(selection.chosen());
    if (selection.is_offered()) CHECK(!selection.conclude(Answer::not_now));
    CHECK(selection.chosen() == AlgorithmId::blocks);
  }
  constexpr auto move = AlgorithmId::symmetric_move;
  CHECK((chosen == std::vector{move, move, AlgorithmId::blocks, move}));
}

/// Reports tell one reason: that of the algorithm with the fewest conditions, or a refusal.
void reasons_for_mpi() {
  const auto why = [](const AgreedCall& call, Answer answer) -> std::string_view {
    engine::AttemptsOfTeam attempts;
    engine::Selection selection(attempts);
    selection.call = call;
    selection.begin();
    if (answer != Answer::accepted) CHECK(selection.is_offered() && !selection.conclude(answer));
    CHECK(selection.chosen() == AlgorithmId::by_mpi);
    return selection.why_by_mpi();
  };
  AgreedCall call;
  call.call = engine::collectives::allreduce;
  call.team = {.ranks = 4,
               .has_shared_memory = true,
               .may_see_devices = true,
               .may_have_kernels = true,
               .most_offered = engine::offer_words};
  call.reduction = engine::ReductionShape{codec::Combine::sum, ElementType::f32, 16, 1};
  CHECK(why(call, Answer::accepted) == engine::does_not_pay);
  call.is_long_enough = false;
  CHECK(why(call, Answer::accepted) == "shorter than the threshold");
  call.on_devices = call.is_short = true;
  CHECK(why(call, Answer::never) == "members share a GPU");
  CHECK(why(call, Answer::not_now) == "a member's GPU or buffer cannot take part");
  CHECK(why(call, Answer::not_yet) == "memory is being opened for the next such call");
  call.team.hosts = 2;
  CHECK(why(call, Answer::accepted) == "too short for messages");
  call = {.call = engine::collectives::alltoallv, .team = call.team};
  CHECK(why(call, Answer::accepted) == engine::does_not_pay);
}

void table_is_complete() {
  for (std::size_t i = 0; i < engine::algorithms().size(); ++i) {
    const bool may_be_offered = i <= static_cast<std::size_t>(engine::last_offered);
    CHECK(engine::algorithms()[i].is_offered() == may_be_offered);
  }
  CHECK(std::string_view(engine::algorithms().back().name) == "mpi");
}

}  // namespace

int main() {
  std::vector<std::uint64_t> served(static_cast<std::size_t>(AlgorithmId::count_));
  for (int ranks = 2; ranks <= 64; ++ranks) {
    Random random(static_cast<std::uint64_t>(ranks));
    for (int team = 0; team < 8; ++team) play(random, ranks, served);
  }
  for (const std::uint64_t number : served) CHECK(number > 0);
  has_no_memory();
  refused_less_and_less_often();
  refusals_are_kept();
  reasons_for_mpi();
  table_is_complete();
  return check::failures != 0;
}
