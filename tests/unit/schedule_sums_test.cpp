// Reductions in which partial sums travel: what each rank wants has every rank's contribution
// exactly once, sends and receives match, rounds and volumes are those of the headers, and a runner
// that goes round by round gets to the end with one slot a peer, however far ranks are apart.
//
// A partial sum is a number: of up to 64 ranks each contributes a bit of its own, so that what is
// there twice is found at once; of more each contributes a random number.

#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

#include "schedule_cases.hpp"
#include "simulation/recursive_sums.hpp"
#include "simulation/ring_sums.hpp"
#include "simulation/sum_algorithms.hpp"
#include "simulation/tree_sums.hpp"

using namespace mpress::simulation;
using namespace schedule_cases;
using schedule_simulator::index;

namespace {

using Sum = std::uint64_t;

struct SumPlan {
  SumPlan(SumAlgorithm with, const SumTask& what) : algorithm(with), task(what) {
    for (int rank = 0; rank < task.size; ++rank) ranks.push_back(make(with, task, rank));
  }
  Volume volume() const {
    Volume volume{ranks[0].rounds, 0, 0};
    for (const Schedule& schedule : ranks) {
      Block sent = 0, received = 0;
      for (const Transfer& transfer : schedule.sends) sent += transfer.count;
      for (const Transfer& transfer : schedule.receives) received += transfer.count;
      volume.busiest = std::max({volume.busiest, sent, received});
      volume.total += sent;
    }
    return volume;
  }

  SumAlgorithm algorithm;
  SumTask task;
  std::vector<Schedule> ranks;
};

/// Each rank goes round by round: it sends all that a round wants, as far as its one slot to each
/// peer is free, then takes what comes, and only then begins the next one. Ranks get on in random
/// order.
class SumRunner {
 public:
  explicit SumRunner(const SumPlan& plan)
      : plan_(plan),
        pieces_(static_cast<std::size_t>(pieces_of(plan.algorithm, plan.task.size))),
        states_(plan.ranks.size()) {
    for (int rank = 0; rank < plan.task.size; ++rank) {
      const Sum own =
          plan.task.size <= 64 ? Sum{1} << rank : Sum{generator()()} << 32 | generator()();
      all_ += own;
      states_[index(rank)].has.assign(pieces_, own);
    }
  }

  /// Empty, or what is wrong.
  std::string run() {
    for (int rank = 0; rank < plan_.task.size; ++rank) look_at(rank);
    std::vector<int> able(states_.size());
    std::iota(able.begin(), able.end(), 0);
    while (!able.empty() && error_.empty()) {
      std::swap(able[generator()() % able.size()], able.back());
      const int rank = able.back();
      able.pop_back();
      advance(rank, able);
    }
    for (int rank = 0; rank < plan_.task.size && error_.empty(); ++rank) judge(rank);
    if (error_.empty() && !slots_.empty()) error_ = "what somebody sends is never taken";
    return error_;
  }

 private:
  struct State {
    std::vector<Sum> has;
    std::size_t sends = 0;
    std::size_t receives = 0;
  };
  struct Sent {
    int round;
    std::vector<Block> blocks;
    std::vector<Sum> sums;
  };

  void fail(const std::string& what, int rank) {
    if (error_.empty()) error_ = "rank " + std::to_string(rank) + ": " + what;
  }

  void look_at(int rank) {
    const Schedule& schedule = plan_.ranks[index(rank)];
    if (schedule.rounds != plan_.ranks[0].rounds) fail("other rounds than rank 0", rank);
    for (const auto* transfers : {&schedule.sends, &schedule.receives}) {
      std::pair<int, int> before{-1, -1};
      for (const Transfer& one : *transfers) {
        if (one.round < before.first || one.round >= schedule.rounds) fail("no such round", rank);
        if (before == std::pair{one.round, one.peer}) fail("two transfers of one peer", rank);
        if (one.peer < 0 || one.peer >= plan_.task.size || one.peer == rank) fail("no peer", rank);
        if (one.count == 0) fail("an empty transfer", rank);
        for (const Block block : schedule.blocks_of(one))
          if (block >= pieces_) fail("no such block", rank);
        before = {one.round, one.peer};
      }
    }
  }

  void advance(int rank, std::vector<int>& able) {
    State& state = states_[index(rank)];
    const Schedule& schedule = plan_.ranks[index(rank)];
    for (;;) {
      const int of_sends =
          state.sends < schedule.sends.size() ? schedule.sends[state.sends].round : schedule.rounds;
      const int of_receives = state.receives < schedule.receives.size()
                                  ? schedule.receives[state.receives].round
                                  : schedule.rounds;
      if (of_sends == schedule.rounds && of_receives == schedule.rounds) return;
      if (of_sends <= of_receives) {
        const Transfer& transfer = schedule.sends[state.sends];
        const std::pair<int, int> slot{rank, transfer.peer};
        if (slots_.contains(slot)) return;  // its reader wakes this rank
        const auto blocks = schedule.blocks_of(transfer);
        Sent sent{transfer.round, {blocks.begin(), blocks.end()}, {}};
        for (const Block block : blocks) sent.sums.push_back(state.has[block]);
        slots_.emplace(slot, std::move(sent));
        ++state.sends;
        able.push_back(transfer.peer);
        continue;
      }
      const Transfer& transfer = schedule.receives[state.receives];
      const auto found = slots_.find({transfer.peer, rank});
      if (found == slots_.end()) return;  // its sender wakes this rank
      take(rank, transfer, found->second);
      slots_.erase(found);
      ++state.receives;
      able.push_back(transfer.peer);
    }
  }

  void take(int rank, const Transfer& transfer, const Sent& sent) {
    const auto expected = plan_.ranks[index(rank)].blocks_of(transfer);
    if (sent.round != transfer.round) return fail("expects another round's", rank);
    if (!std::equal(sent.blocks.begin(), sent.blocks.end(), expected.begin(), expected.end()))
      return fail("expects other blocks", rank);
    for (std::size_t i = 0; i < sent.blocks.size(); ++i) {
      Sum& has = states_[index(rank)].has[sent.blocks[i]];
      if (transfer.combines && plan_.task.size <= 64 && (has & sent.sums[i]) != 0)
        return fail("adds what it has", rank);
      has = transfer.combines ? has + sent.sums[i] : sent.sums[i];
    }
  }

  void judge(int rank) {
    const State& state = states_[index(rank)];
    const Schedule& schedule = plan_.ranks[index(rank)];
    if (state.sends < schedule.sends.size() || state.receives < schedule.receives.size())
      return fail("never ends", rank);
    const Reduction reduction = plan_.task.reduction;
    if (reduction == Reduction::reduce && rank != plan_.task.root) return;
    for (std::size_t piece = 0; piece < pieces_; ++piece) {
      if (reduction == Reduction::reduce_scatter && piece != index(rank)) continue;
      if (state.has[piece] != all_) fail("has another sum", rank);
    }
  }

  const SumPlan& plan_;
  std::size_t pieces_;
  std::vector<State> states_;
  std::map<std::pair<int, int>, Sent> slots_;
  Sum all_ = 0;
  std::string error_;
};

/// As the headers have it.
Volume expected(SumAlgorithm algorithm, Reduction reduction, int size) {
  const auto n = static_cast<Block>(size);
  const Block p = std::bit_floor(n), r = n - p;
  const int levels = std::countr_zero(p), folds = r > 0 ? 1 : 0;
  switch (algorithm) {
    case SumAlgorithm::ring: {
      const int times = reduction == Reduction::allreduce ? 2 : 1;
      const Block more = static_cast<Block>(times) * (n - 1);
      return {times * (size - 1), more, more * n};
    }
    case SumAlgorithm::doubling:
      return {levels + 2 * folds, static_cast<Block>(levels + folds),
              p * static_cast<Block>(levels) + 2 * r};
    case SumAlgorithm::halving: {
      Block busiest = (r > 0 ? n : 0) + p - 1;
      for (int j = 0; j < levels; ++j) busiest += std::min(r, Block{1} << j);
      return {levels + 2 * folds, busiest, n * (n - 1) + r};
    }
    default: return {log_up(size, 2), static_cast<Block>(log_up(size, 2)), n - 1};
  }
}

/// The most that anybody sends, or receives, in each round, as sum_work() has it.
bool is_work(const SumPlan& plan) {
  const int size = plan.task.size;
  const std::vector<SumRound> work = sum_work(plan.algorithm, plan.task.reduction, size);
  if (work.size() != index(plan.ranks[0].rounds)) return false;
  std::vector<Block> most(work.size());
  for (const Schedule& schedule : plan.ranks)
    for (const auto* transfers : {&schedule.sends, &schedule.receives})
      for (const Transfer& one : *transfers)
        most[index(one.round)] = std::max(most[index(one.round)], Block{one.count});
  const int pieces = pieces_of(plan.algorithm, size);
  for (std::size_t round = 0; round < work.size(); ++round) {
    const double moved = static_cast<double>(most[round]) / pieces;
    if (std::abs(work[round].moved - moved) > 1e-9 || work[round].decoded != work[round].moved)
      return false;
  }
  return true;
}

void check(SumAlgorithm algorithm, const SumTask& task) {
  const SumPlan plan(algorithm, task);
  std::string error = SumRunner(plan).run();
  const Volume volume = plan.volume(), wanted = expected(algorithm, task.reduction, task.size);
  if (error.empty() && volume != wanted) error = text(volume) + ", not " + text(wanted);
  if (error.empty() && !is_work(plan)) error = "other work";
  if (!error.empty())
    std::fprintf(stderr, "%s, %s of %d to %d: %s\n", name(algorithm),
                 reduction_names[static_cast<std::size_t>(task.reduction)], task.size, task.root,
                 error.c_str());
  CHECK(error.empty());
}

constexpr Reduction reductions[] = {Reduction::allreduce, Reduction::reduce,
                                    Reduction::reduce_scatter};

void every_size() {
  for (const Reduction reduction : reductions)
    for (const SumAlgorithm algorithm : sum_algorithms_of(reduction))
      for (int size = 1; size <= 64; ++size) {
        const int roots = reduction == Reduction::reduce ? size : 1;
        for (int root = 0; root < roots; ++root) check(algorithm, {reduction, size, root});
      }
}

/// Of rings and halves n ranks have n pieces each, and so fewer ranks.
void many_ranks() {
  for (const Reduction reduction : reductions)
    for (const SumAlgorithm algorithm : sum_algorithms_of(reduction)) {
      const int most = pieces_of(algorithm, 2) == 1         ? 4096
                       : algorithm == SumAlgorithm::halving ? 1024
                                                            : 300;
      for (int i = 0; i < 3; ++i) {
        const int size = random_int(65, most);
        check(algorithm,
              {reduction, size, reduction == Reduction::reduce ? random_int(0, size - 1) : 0});
      }
      check(algorithm, {reduction, most});
    }
}

void work_of_two_shots() {
  CHECK(sum_work(SumAlgorithm::two_shot, Reduction::allreduce, 4) ==
        (std::vector<SumRound>{{0.75, 0.75, 0.75, 3}, {0.75, 0.25, 0.75, 3}}));
  CHECK(sum_work(SumAlgorithm::two_shot, Reduction::reduce_scatter, 4).size() == 1);
  // What a ring's all-gather passes on is encoded once.
  double encoded = 0;
  for (const SumRound& round : sum_work(SumAlgorithm::ring, Reduction::allreduce, 4))
    encoded += round.encoded;
  CHECK(encoded == 1);
  for (const Reduction reduction : reductions)
    CHECK(sum_work(SumAlgorithm::two_shot, reduction, 1).empty());
  CHECK(sum_work(SumAlgorithm::binomial, Reduction::allreduce, 4).empty());
}

template <class Call>
bool is_refused(Call call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

void wrong_arguments() {
  CHECK(is_refused([] { make(SumAlgorithm::binomial, {Reduction::allreduce, 4}, 0); }));
  CHECK(is_refused([] { make(SumAlgorithm::two_shot, {Reduction::allreduce, 4}, 0); }));
  CHECK(is_refused([] { ring_allreduce({Reduction::reduce, 4}, 0); }));
  CHECK(is_refused([] { binomial_reduce({Reduction::reduce, 4, 4}, 0); }));
  CHECK(is_refused([] { ring_reduce_scatter({Reduction::reduce_scatter, 0}, 0); }));
  CHECK(is_refused([] { recursive_doubling_allreduce({Reduction::allreduce, 4}, 4); }));
  CHECK(sum_algorithm_of("halving") == SumAlgorithm::halving && !sum_algorithm_of("linear"));
  CHECK(reduction_of("reduce") == Reduction::reduce && !reduction_of("bcast"));
}

/// The tests above can fail: a schedule that adds in the all-gather is found.
void a_wrong_schedule_is_found() {
  SumPlan plan(SumAlgorithm::ring, {Reduction::allreduce, 5});
  plan.ranks[2].receives.back().combines = true;
  CHECK(!SumRunner(plan).run().empty());
  SumPlan other(SumAlgorithm::doubling, {Reduction::allreduce, 6});
  other.ranks[3].receives.front().combines = false;
  CHECK(!SumRunner(other).run().empty());
}

}  // namespace

int main() {
  every_size();
  many_ranks();
  work_of_two_shots();
  wrong_arguments();
  a_wrong_schedule_is_found();
  return check::failures == 0 ? 0 : 1;
}
