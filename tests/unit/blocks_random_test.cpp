// Random collective calls whose blocks travel between members that are threads, by every schedule
// that mpress runs: on the host and on devices, with and without gaps, raw and encoded, empty, on
// one host or several, and with members that have nothing to send.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "coll/blocks/runner.hpp"
#include "core/plain_layout.hpp"
#include "loopback/letter_team.hpp"
#include "loopback/place.hpp"
#include "schedule/algorithms.hpp"

using namespace mpress;

namespace {

using schedule::Op;
using Bytes = std::vector<std::byte>;

constexpr std::size_t limit = 1 << 20;
constexpr double bound = 1e-3;

/// A call as all members know it.
struct Call {
  engine::Collective collective;
  schedule::Task task;
  schedule::Method method;
  std::vector<int> hosts;  ///< by member
  ElementType type;
  Spec spec;
  std::size_t most;                 ///< elements of the longest block
  std::optional<int> lacks_all;     ///< this member has failed
  std::optional<int> lacks_memory;  ///< this one has none for what it receives
  unsigned seed;

  trace::Called called() const {
    return {collective.op, static_cast<std::uint8_t>(method.algorithm)};
  }

  /// Elements of a block, whose items are of 1, 2 or 3 on each member.
  std::size_t elements(schedule::Block block) const {
    const auto hash = static_cast<std::size_t>((block + 1) * 0x9e3779b97f4a7c15u >> 32);
    return hash % 5 == 0 ? 0 : 6 * (1 + hash % (most / 6));
  }
  std::size_t bytes(schedule::Block block) const { return elements(block) * element_size(type); }

  double value(schedule::Block block, std::size_t i) const {
    return static_cast<double>(block % 97) + std::sin(static_cast<double>(i) * 0.01 + seed);
  }
};

Call any_call(int members, unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](unsigned most) { return static_cast<unsigned>(random() % (most + 1)); };
  Call call;
  call.seed = seed;
  constexpr std::array<Op, schedule::op_count> ops = {Op::bcast, Op::scatter, Op::gather,
                                                      Op::allgather, Op::alltoall};
  constexpr std::array<trace::Op, schedule::op_count> names = {
      trace::Op::bcast, trace::Op::scatter, trace::Op::gather, trace::Op::allgather,
      trace::Op::alltoall};
  constexpr std::array<Family, schedule::op_count> families = {
      Family::bcast, Family::scatter, Family::gather, Family::allgather, Family::alltoall};
  const unsigned which = up_to(schedule::op_count - 1);
  call.collective = {names[which], families[which], false,
                     ops[which] == Op::bcast || ops[which] == Op::allgather, false};
  const int ranks_a_host = up_to(1) ? members : 1 + static_cast<int>(up_to(3));
  for (int rank = 0; rank < members; ++rank) call.hosts.push_back(rank / ranks_a_host);
  const schedule::Hosts hosts(call.hosts);
  const auto algorithms =
      schedule::run_only(schedule::algorithms_of(ops[which], hosts), ops[which]);
  call.method.algorithm = algorithms[up_to(static_cast<unsigned>(algorithms.size() - 1))];
  const bool has_pieces = call.method.algorithm == schedule::Algorithm::scatter_ring ||
                          call.method.algorithm == schedule::Algorithm::scatter_doubling;
  if (ops[which] == Op::bcast) {
    call.method.segments = has_pieces ? members : 1 + static_cast<int>(up_to(5));
  }
  call.method.window = 1 + static_cast<int>(up_to(3));
  call.task = {ops[which], members, static_cast<int>(up_to(static_cast<unsigned>(members - 1))),
               call.method.segments};
  call.type = up_to(1) ? ElementType::f32 : ElementType::f64;
  call.spec.codec = std::array{Codec::none, Codec::mpc, Codec::szp}[up_to(2)];
  if (call.spec.codec == Codec::szp) {
    call.spec.bound = Bound::abs;
    call.spec.value = bound;
  }
  call.most = std::array{12u, 3000u, 30000u}[members > 16 ? up_to(1) : up_to(2)];
  if (up_to(9) == 0) call.lacks_all = static_cast<int>(up_to(static_cast<unsigned>(members - 1)));
  if (up_to(9) == 0) {
    call.lacks_memory = static_cast<int>(up_to(static_cast<unsigned>(members - 1)));
  }
  return call;
}

/// The elements of a block, without gaps.
template <typename T>
Bytes elements_of(const Call& call, schedule::Block block) {
  Bytes bytes(call.elements(block) * sizeof(T));
  for (std::size_t i = 0; i < call.elements(block); ++i) {
    const T value = static_cast<T>(call.value(block, i));
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return bytes;
}

Bytes elements_of(const Call& call, schedule::Block block) {
  return call.type == ElementType::f32 ? elements_of<float>(call, block)
                                       : elements_of<double>(call, block);
}

template <typename T>
bool are_near(const Bytes& a, const Bytes& b) {
  for (std::size_t i = 0; i + sizeof(T) <= a.size(); i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, &a[i], sizeof(T));
    std::memcpy(&y, &b[i], sizeof(T));
    if (!(std::abs(static_cast<double>(x) - static_cast<double>(y)) <= bound)) return false;
  }
  return true;
}

/// What members share of a call.
struct Round {
  std::mutex mutex;
  std::map<schedule::Block, Bytes> seen;  ///< by the readers of a block that several have
};

class Blocks final : public engine::BlockMap {
 public:
  Blocks(const Call& call, int rank, std::mt19937& random)
      : BlockMap(call.task), call_(call), rank_(rank) {
    for (schedule::Block block = 0; block < call.task.blocks(); ++block) {
      const bool is_own = call.task.origin(block) == rank;
      if (call.bytes(block) == 0) continue;
      if (is_own) {
        own_.try_emplace(block, call.type, call.bytes(block), random)
            .first->second.write(elements_of(call, block));
      }
      if (call.task.is_wanted(block, rank) || (is_own && call.task.op == Op::allgather)) {
        others_.try_emplace(block, call.type, call.bytes(block), random);
      }
    }
  }

  engine::BlockData outgoing(schedule::Block block) const override {
    const auto own = own_.find(block);
    return own != own_.end() ? own->second.data() : incoming(block);
  }
  engine::BlockData incoming(schedule::Block block) const override {
    if (call_.lacks_memory == rank_ && call_.bytes(block) > 0) {
      return {nullptr, 0, engine::plain_layout(call_.type), call_.bytes(block)};
    }
    const auto found = others_.find(block);
    return found != others_.end() ? found->second.data() : engine::BlockData{};
  }

  /// `has_own_by_decoder`: also what is this rank's own.
  void check(Round& round, bool has_own_by_decoder) const {
    for (const auto& [block, place] : others_) {
      if (call_.task.origin(block) == rank_ && !has_own_by_decoder) continue;
      const Bytes sent = elements_of(call_, block), got = place.read();
      if (call_.spec.codec != Codec::szp) {
        CHECK(got == sent);
      } else {
        CHECK(call_.type == ElementType::f32 ? are_near<float>(got, sent)
                                             : are_near<double>(got, sent));
      }
      const std::lock_guard lock(round.mutex);
      const auto [seen, is_first] = round.seen.emplace(block, got);
      CHECK(is_first || seen->second == got);  // all readers have the same bits
    }
  }

 private:
  const Call& call_;
  const int rank_;
  std::map<schedule::Block, loopback::Place> own_, others_;
};

/// How the calls ended, of all members.
struct Tally {
  std::atomic<int> served{0}, failed{0}, lossy_own{0}, waited{0};
};

void play(loopback::Rank& rank, loopback::ThreadMember& member, const Call& call,
          loopback::Letters& letters, Round& round, Tally& tally) {
  const loopback::LetterTeam team(rank, call.hosts, letters, member.random());
  rank.config.spec = call.spec;
  const Blocks blocks(call, rank.rank, member.random);
  sim_synchronize();  // a collective call has waited for the program's default streams
  const auto envelopes = team.envelopes(rank, 0);
  const schedule::Schedule schedule =
      schedule::make(call.method, call.task, rank.rank, team.hosts());
  const bool has_nothing = call.lacks_all == rank.rank;
  engine::Runner runner(rank, *envelopes, call.collective, call.called(), team, schedule, blocks,
                        has_nothing);
  const bool waits = member.random() % 2 == 0;
  runner.drive(waits);
  runner.await(waits);
  bool is_run = false;
  for (;;) {
    rank.progress.advance();
    is_run = is_run || runner.advance();
    if (runner.advance_own() && is_run) break;
    if (!is_run && waits && runner.wait()) {
      ++tally.waited;
      continue;
    }
    member.dawdle();
  }
  if (!runner.status().is_ok() || has_nothing) {
    ++tally.failed;
    CHECK(call.lacks_all || call.lacks_memory);
  } else {
    ++tally.served;
    const bool has_own = runner.has_own_by_decoder();
    if (has_own) ++tally.lossy_own;
    blocks.check(round, has_own);
  }
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_PEERS", "1", 1);
  unsigned seed = 0;
  Tally tally;
  const auto play_some = [&](int members, int calls, const char* link) {
    loopback::play_calls<Round>(members, calls, ++seed, link, limit, any_call,
                                [&](auto&... of_call) { play(of_call..., tally); });
  };
  for (const char* const link : {"auto", "host", "mpi"}) {
    for (const auto& [members, calls] : {std::pair{2, 30}, {3, 25}, {5, 20}, {8, 12}, {16, 4}}) {
      play_some(members, calls, link);
    }
  }
  play_some(64, 4, "auto");
  CHECK(tally.served > 1000 && tally.failed > 20 && tally.lossy_own > 3 && tally.waited > 3);
  return check::failures != 0;
}
