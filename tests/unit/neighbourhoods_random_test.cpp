// Random exchanges of neighbourhoods between members that are threads: random grids and lists of
// offsets, straight and by each way to combine, that move data and that sum it, on the host and on
// devices, with and without gaps, raw and encoded, empty, on one host or several.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "coll/neighbourhoods/neighbour_call.hpp"
#include "coll/neighbourhoods/neighbour_sum.hpp"
#include "core/plain_layout.hpp"
#include "loopback/letter_team.hpp"
#include "loopback/place.hpp"

using namespace mpress;

namespace {

using engine::Pattern;
using Values = std::vector<double>;

constexpr std::size_t limit = 1 << 20;
constexpr double bound = 1e-3;

/// A call as all members know it.
struct Call {
  engine::Collective collective;
  std::vector<int> sizes, periodic;  ///< of the grid
  std::vector<int> offsets;
  engine::NeighbourHints hints;
  Pattern pattern;
  bool sums;
  bool knows_sizes;  ///< all members
  std::vector<int> hosts;
  ElementType type;
  Spec spec;
  std::size_t most;  ///< elements of the longest block
  unsigned seed;

  schedule::Neighbourhood list() const {
    const auto count = static_cast<int>(offsets.size() / sizes.size());
    return {schedule::Grid(sizes, periodic), count, offsets};
  }
  /// Of the block for a neighbour; of an all-gather, and of sums, all have as many.
  std::size_t elements(int neighbour) const {
    const auto which =
        sums || pattern == Pattern::allgather ? 0u : static_cast<unsigned>(neighbour);
    const std::size_t hash = (which + 1 + seed) * 0x9e3779b97f4a7c15u >> 32;
    return hash % 5 == 0 ? 0 : 6 * (1 + hash % (most / 6));
  }
  double value(int origin, int neighbour, std::size_t i) const {
    const int which = pattern == Pattern::allgather ? 0 : neighbour;
    return origin % 61 + which % 7 + std::sin(static_cast<double>(i) * 0.01 + seed);
  }
  Values block(int origin, int neighbour) const {
    Values values(elements(neighbour));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(origin, neighbour, i);
    return values;
  }
};

Call any_call(int members, unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % (most + 1)); };
  Call call;
  call.seed = seed;
  for (int left = members; left > 1 || call.sizes.empty();) {
    int size = 1 + up_to(static_cast<unsigned>(left - 1));
    while (left % size != 0) --size;
    if (call.sizes.size() == 2 || size == 1) size = left;
    call.sizes.push_back(size);
    left /= size;
  }
  for (std::size_t i = 0; i < call.sizes.size(); ++i) call.periodic.push_back(up_to(2) > 0);
  const int count = up_to(9);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) * call.sizes.size(); ++i) {
    call.offsets.push_back(up_to(4) - 2);
  }
  call.pattern = up_to(2) == 0 ? Pattern::allgather : Pattern::alltoall;
  call.sums = up_to(2) == 0;
  using Algorithm = engine::NeighbourHints::Algorithm;
  call.hints.algorithm =
      std::array{Algorithm::automatic, Algorithm::direct, Algorithm::combining,
                 Algorithm::digits,    Algorithm::lines,  Algorithm::ring}[up_to(5)];
  if (call.hints.algorithm == Algorithm::ring && call.pattern == Pattern::allgather) {
    call.hints.algorithm = Algorithm::combining;
  }
  call.hints.ports = up_to(1) * up_to(3);
  call.hints.is_reproducible = up_to(3) == 0;
  call.knows_sizes = up_to(3) > 0;
  call.collective = call.sums ? engine::Collective{trace::Op::iso_reduce, Family::neighbor}
                              : engine::Collective{trace::Op::iso_alltoall, Family::neighbor};
  call.collective.has_many_readers = call.pattern == Pattern::allgather;
  const int ranks_a_host = up_to(1) ? members : 1 + up_to(3);
  for (int rank = 0; rank < members; ++rank) call.hosts.push_back(rank / ranks_a_host);
  call.type = up_to(1) ? ElementType::f32 : ElementType::f64;
  call.spec.codec = std::array{Codec::none, Codec::mpc, Codec::szp}[up_to(2)];
  if (call.spec.codec == Codec::szp) {
    call.spec.bound = Bound::abs;
    call.spec.value = bound;
  }
  call.most = std::array{12u, 300u, 3000u, 30000u}[up_to(members > 16 ? 2 : 3)];
  return call;
}

/// As elements of the call's type.
std::vector<std::byte> elements_of(ElementType type, const Values& values) {
  std::vector<std::byte> elements(values.size() * element_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == ElementType::f32) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(&elements[i * sizeof value], &value, sizeof value);
    } else {
      std::memcpy(&elements[i * sizeof(double)], &values[i], sizeof(double));
    }
  }
  return elements;
}

/// Is each element there so near to these values?
bool are_near(ElementType type, const loopback::Place& place, const Values& values, double most) {
  const auto elements = place.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    double got = 0, wanted = values[i];
    if (type == ElementType::f32) {
      float value;
      std::memcpy(&value, &elements[i * sizeof value], sizeof value);
      got = value;
      wanted = static_cast<float>(wanted);
    } else {
      std::memcpy(&got, &elements[i * sizeof got], sizeof got);
    }
    if (!(std::abs(got - wanted) <= most)) return false;
  }
  return true;
}

/// The sum, element by element.
class SumFold final : public engine::Fold {
 public:
  SumFold(ElementType type, std::size_t elements) {
    bytes_ = elements * element_size(type);
    count_ = static_cast<std::int64_t>(elements);
    layout_ = engine::plain_layout(type);
  }
  Status combine(const void* from, void* into) override {
    if (layout_->element == ElementType::f32) {
      add<float>(from, into);
    } else {
      add<double>(from, into);
    }
    return Status::ok;
  }

 private:
  template <typename T>
  void add(const void* from, void* into) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      static_cast<T*>(into)[i] += static_cast<const T*>(from)[i];
    }
  }
};

/// Of all members.
struct Tally {
  std::atomic<int> moved{0}, summed{0}, bounded{0}, waited{0};
};

struct Nothing {};

class Member {
 public:
  Member(loopback::Rank& rank, const Call& call, std::mt19937& random)
      : call_(call), list_(call.list()) {
    exchange_.plans = std::make_shared<engine::NeighbourPlans>(list_, rank.rank, call.hints);
    exchange_.pattern = call.pattern;
    const auto& here = exchange_.plans->coordinates();
    const bool is_gather = call.pattern == Pattern::allgather;
    const bool is_plain = random() % 2 == 0;
    for (int i = 0; i < (is_gather ? 1 : list_.count()); ++i) {
      exchange_.sent.emplace_back();
      if (!is_gather && list_.target(here, i) == schedule::Grid::none) continue;
      sent_.emplace_back(place_for(i, random, is_plain));
      sent_.back()->write(elements_of(call.type, call.block(rank.rank, i)));
      if (call.elements(i) > 0) exchange_.sent.back() = sent_.back()->data();
    }
    if (call.sums) result_ = place_for(0, random, is_plain);
    for (int i = 0; i < list_.count(); ++i) {
      exchange_.received.emplace_back();
      received_.emplace_back();
      sources_.push_back(list_.source(here, i));
      if (sources_.back() == schedule::Grid::none || call.elements(i) == 0) continue;
      if (!call.sums) {
        received_.back() = place_for(i, random, is_plain);
      }
      exchange_.received.back() = (call.sums ? result_ : received_.back())->data();
    }
    if (call.sums) {
      exchange_.sum.emplace();
      exchange_.sum->result = result_->data();
      exchange_.sum->fold = std::make_shared<SumFold>(call.type, call.elements(0));
      exchange_.sum->how = codec::Combine::sum;
      exchange_.sum->element = call.type;
    } else if (call.knows_sizes) {
      for (int i = 0; i < (is_gather ? 1 : list_.count()); ++i) {
        exchange_.sizes.push_back(call.elements(i) * element_size(call.type));
      }
    }
  }

  const engine::Exchange& exchange() const { return exchange_; }

  void check() const {
    const double lossy = call_.spec.codec == Codec::szp ? bound : 0;
    if (!call_.sums) {
      for (std::size_t i = 0; i < received_.size(); ++i) {
        if (!received_[i]) continue;
        const auto neighbour = static_cast<int>(i);
        CHECK(are_near(call_.type, *received_[i], call_.block(sources_[i], neighbour), lossy));
      }
      return;
    }
    Values sum(call_.elements(0));
    bool is_any = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i] == schedule::Grid::none) continue;
      is_any = true;
      const Values one = call_.block(sources_[i], static_cast<int>(i));
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] += call_.type == ElementType::f32 ? static_cast<float>(one[k]) : one[k];
      }
    }
    const double rounding = call_.type == ElementType::f32 ? 1e-3 : 1e-11;
    CHECK(!is_any || are_near(call_.type, *result_, sum, lossy + rounding));
  }

 private:
  std::unique_ptr<loopback::Place> place_for(int neighbour, std::mt19937& random,
                                             bool is_plain) const {
    const std::size_t bytes = call_.elements(neighbour) * element_size(call_.type);
    return std::make_unique<loopback::Place>(call_.type, bytes, random, is_plain);
  }

  const Call& call_;
  const schedule::Neighbourhood list_;
  engine::Exchange exchange_;
  std::vector<std::unique_ptr<loopback::Place>> sent_, received_;
  std::unique_ptr<loopback::Place> result_;
  std::vector<int> sources_;
};

void play(loopback::Rank& rank, loopback::ThreadMember& thread, const Call& call,
          loopback::Letters& letters, Nothing&, Tally& tally) {
  loopback::LetterTeam team(rank, call.hosts, letters, thread.random());
  rank.config.spec = call.spec;
  const Member member(rank, call, thread.random);
  sim_synchronize();  // a collective call has waited for the program's default streams
  const bool waits = thread.random() % 2 == 0;
  const engine::Served served{.tag = 0, .is_blocking = waits};
  std::unique_ptr<engine::CollectiveOperation> operation;
  if (call.sums) {
    operation = std::make_unique<engine::NeighbourSum>(rank, call.collective, member.exchange(),
                                                       team, served);
  } else {
    operation = std::make_unique<engine::NeighbourCall>(rank, call.collective, member.exchange(),
                                                        team, served);
  }
  for (int start = 0; start < 2; ++start) {  // as a persistent call has several
    operation->start(FloatModes::of_thread());
    operation->await(waits);
    for (;;) {
      rank.progress.advance();
      if (operation->advance()) break;
      if (waits && operation->wait()) {
        ++tally.waited;
        continue;
      }
      thread.dawdle();
    }
    CHECK(operation->status().is_ok());
    member.check();
    ++(call.sums ? tally.summed : tally.moved);
    if (operation->bound() > 0) ++tally.bounded;
    CHECK(operation->bound() <= bound * (1 + 1e-9) || call.spec.codec != Codec::szp);
  }
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_PEERS", "1", 1);
  unsigned seed = 0;
  Tally tally;
  const auto play_some = [&](int members, int calls, const char* link) {
    loopback::play_calls<Nothing>(members, calls, ++seed, link, limit, any_call,
                                  [&](auto&... of_call) { play(of_call..., tally); });
  };
  for (const char* const link : {"auto", "host", "mpi"}) {
    for (const auto& [members, calls] : {std::pair{1, 4}, {2, 20}, {3, 15}, {6, 15}, {12, 6}}) {
      play_some(members, calls, link);
    }
  }
  play_some(27, 4, "auto");
  play_some(64, 2, "auto");
  std::printf("%d moved, %d summed, %d bounded, %d waited\n", tally.moved.load(),
              tally.summed.load(), tally.bounded.load(), tally.waited.load());
  CHECK(tally.moved > 600 && tally.summed > 200 && tally.bounded > 20 && tally.waited > 3);
  return check::failures != 0;
}
