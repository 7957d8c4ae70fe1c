// Random reductions by blocks between members that are threads: on the host and on devices, raw and
// encoded, in place or not, on one host or several, of few elements and many.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coll/reduce/reduced_call.hpp"
#include "loopback/letter_team.hpp"
#include "schedule/algorithms.hpp"

using namespace mpress;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t limit = 4 << 20;

/// A call as all members know it.
struct Call {
  engine::Collective collective;
  codec::Combine how;
  ElementType type;
  std::size_t count;
  int root;
  Spec spec;
  bool is_reproducible;
  std::vector<int> hosts;                  ///< by member
  std::vector<std::int64_t> piece_counts;  ///< of a reduce-scatter
  unsigned seed;

  double value(int rank, std::size_t i) const {
    const double phase = static_cast<double>(i) * 0.003 + rank + seed;
    return how == codec::Combine::prod ? 1 + 0.01 * std::sin(phase) : 10 * std::sin(phase);
  }
  bool is_scattered() const { return collective.family == Family::reduce_scatter; }
};

Spec any_spec(unsigned which) {
  std::string error;
  Spec spec;
  const char* const texts[] = {"none", "mpc", "zfp:20", "szp:abs=1e-3", "szp:rel=1e-4"};
  CHECK(parse_spec(texts[which], spec, error));
  return spec;
}

Call any_call(int members, unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](unsigned most) { return static_cast<unsigned>(random() % (most + 1)); };
  Call call;
  call.seed = seed;
  constexpr std::array<std::pair<trace::Op, Family>, 3> ops = {
      {{trace::Op::allreduce, Family::allreduce},
       {trace::Op::reduce, Family::reduce},
       {trace::Op::reduce_scatter, Family::reduce_scatter}}};
  const auto [op, family] = ops[up_to(2)];
  call.collective = {op, family, false, false, true};
  call.how = std::array{codec::Combine::sum, codec::Combine::sum, codec::Combine::min,
                        codec::Combine::max, codec::Combine::prod}[up_to(4)];
  call.type = up_to(1) ? ElementType::f32 : ElementType::f64;
  call.count = std::array{0u, 7u, 2000u, 60000u}[up_to(3)];
  if (call.count > 0) call.count += up_to(100);
  call.root = static_cast<int>(up_to(static_cast<unsigned>(members - 1)));
  call.spec = any_spec(up_to(4));
  call.is_reproducible = up_to(3) == 0;
  const int ranks_a_host = up_to(1) ? members : 1 + static_cast<int>(up_to(3));
  std::size_t left = call.count;
  for (int rank = 0; rank < members; ++rank) {
    call.hosts.push_back(rank / ranks_a_host);
    const std::size_t piece =
        rank + 1 < members ? std::min<std::size_t>(left, random() % (call.count + 1)) : left;
    call.piece_counts.push_back(static_cast<std::int64_t>(piece));
    left -= piece;
  }
  return call;
}

/// Elements without gaps in a member's memory, which may lie on a device.
struct Place {
  Place(const Call& call, std::size_t count, std::mt19937& random)
      : bytes(count * element_size(call.type)) {
    const unsigned where = random() % 4;
    memory.emplace(where < 2    ? gpu::host
                   : where == 2 ? 1
                                : 0,
                   bytes + 1, random() % 4 == 0 ? element_size(call.type) : 0);
    memory->fill(bytes);
  }
  const std::size_t bytes;
  std::optional<loopback::Memory> memory;
};

template <typename T>
Bytes input_of(const Call& call, int rank) {
  Bytes bytes(call.count * sizeof(T));
  for (std::size_t i = 0; i < call.count; ++i) {
    const T value = static_cast<T>(call.value(rank, i));
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return bytes;
}

double combined(codec::Combine how, double a, double b) {
  switch (how) {
    case codec::Combine::min: return std::min(a, b);
    case codec::Combine::max: return std::max(a, b);
    case codec::Combine::prod: return a * b;
    default: return a + b;
  }
}

/// Elements `first` and on of the result are there, within `bound` and what rounding adds.
template <typename T>
bool is_near(const Call& call, std::size_t first, const Bytes& got, double bound) {
  const int members = static_cast<int>(call.hosts.size());
  for (std::size_t i = 0; i < got.size() / sizeof(T); ++i) {
    double expected = static_cast<T>(call.value(0, first + i)), size = std::abs(expected);
    for (int rank = 1; rank < members; ++rank) {
      const double value = static_cast<T>(call.value(rank, first + i));
      expected = combined(call.how, expected, value);
      size += std::abs(value);
    }
    T value;
    std::memcpy(&value, &got[i * sizeof(T)], sizeof(T));
    const double rounding = members * size * std::numeric_limits<T>::epsilon();
    if (!(std::abs(static_cast<double>(value) - expected) <= bound + rounding)) return false;
  }
  return true;
}

struct Round {
  std::mutex mutex;
  std::optional<Bytes> results;  ///< of whoever was first to have all
};

struct Tally {
  std::atomic<int> with_bound{0}, on_devices{0}, waited{0};
};

void play(loopback::Rank& rank, loopback::ThreadMember& member, const Call& call,
          loopback::Letters& letters, Round& round, Tally& tally) {
  loopback::LetterTeam team(rank, call.hosts, letters, member.random());
  team.hints().set_reproducible(call.is_reproducible);
  team.modes().set_between_devices(link::Kind::channel);  // no kernels of all members
  rank.config.spec = call.spec;
  const int me = rank.rank;
  const auto at = static_cast<std::size_t>(me);
  const bool gets_all = call.collective.family == Family::allreduce ||
                        (call.collective.family == Family::reduce && me == call.root);
  const std::size_t results = gets_all ? call.count
                              : call.is_scattered()
                                  ? static_cast<std::size_t>(call.piece_counts[at])
                                  : 0;
  const bool is_in_place = call.seed % 3 == 0;
  Place in(call, call.count, member.random);
  Place out(call, is_in_place ? 0 : results, member.random);
  const Bytes input =
      call.type == ElementType::f32 ? input_of<float>(call, me) : input_of<double>(call, me);
  in.memory->write(input.data(), input.size());
  Place& result = is_in_place ? in : out;
  sim_synchronize();  // a collective call has waited for the program's default streams

  const bool may_be_joined = call.collective.family == Family::reduce;
  const schedule::Op op = may_be_joined ? schedule::Op::gather : schedule::Op::allgather;
  const auto methods = schedule::run_only(schedule::algorithms_of(op, team.hosts()), op);
  engine::Served served{.method = {methods[call.seed % methods.size()], 1, 2},
                        .is_blocking = call.seed % 2 == 0};
  const engine::Reduction reduction{
      {call.how, call.type, call.count, 1}, in.memory->data(), is_in_place};
  engine::AgreedCall agreed{.call = call.collective};
  agreed.team.ranks = rank.size;
  agreed.team.hosts = team.hosts().count();
  agreed.team.between_devices = link::Kind::channel;
  agreed.root = call.root;
  agreed.reduction = reduction;
  std::vector<int> piece_counts(call.piece_counts.begin(), call.piece_counts.end());
  if (call.is_scattered()) agreed.result_counts = engine::Numbers(piece_counts.data());
  engine::ReducedCall reduced(
      rank, team,
      {call.collective, reduction, call.root, result.memory->data(), call.spec, agreed, served});
  reduced.await(served.is_blocking);
  reduced.start(FloatModes::of_thread());
  for (;;) {
    rank.progress.advance();
    if (reduced.advance()) break;
    if (served.is_blocking && member.one_in(2) && reduced.wait()) {
      ++tally.waited;
      continue;
    }
    member.dawdle();
  }
  CHECK(reduced.status().is_ok());
  if (reduced.bound() > 0) ++tally.with_bound;
  if (in.memory->device() != gpu::host) ++tally.on_devices;
  const std::size_t first = call.is_scattered()
                                ? static_cast<std::size_t>(std::accumulate(
                                      call.piece_counts.begin(), call.piece_counts.begin() + me, 0))
                                : 0;
  const Bytes got = result.memory->read(results * element_size(call.type));
  const double bound = std::isnan(reduced.bound()) ? 1e-2 : reduced.bound();
  CHECK(call.type == ElementType::f32 ? is_near<float>(call, first, got, bound)
                                      : is_near<double>(call, first, got, bound));
  if (!gets_all) return;
  const std::lock_guard lock(round.mutex);
  if (!round.results) round.results = got;
  CHECK(*round.results == got);  // all members have the same bits
}

/// Where no member gains, reports say so, and not that no codec was set.
void reason_is_told() {
  const engine::ContributionSummary none{};
  const std::array summaries{none, none};
  const Spec spec{.codec = Codec::szp, .bound = Bound::abs, .value = 1e-3};
  const engine::BoundedCoding coded(summaries, {ElementType::f32, true, 2, spec, false});
  CHECK(coded.coding.spec.codec == Codec::none);
  CHECK(coded.coding.why_raw == trace::Reason::policy);
}

}  // namespace

int main() {
  reason_is_told();
  ::setenv("SIMULATED_GPU_PEERS", "1", 1);
  unsigned seed = 0;
  Tally tally;
  const auto play_some = [&](int members, int calls, const char* link) {
    loopback::play_calls<Round>(members, calls, ++seed, link, limit, any_call,
                                [&](auto&... of_call) { play(of_call..., tally); });
  };
  for (const char* const link : {"auto", "mpi"}) {
    for (const auto& [members, calls] : {std::pair{2, 25}, {3, 20}, {6, 15}, {13, 5}}) {
      play_some(members, calls, link);
    }
  }
  play_some(64, 2, "auto");
  CHECK(tally.with_bound > 20 && tally.on_devices > 100 && tally.waited > 3);
  return check::failures != 0;
}
