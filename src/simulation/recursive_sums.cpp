#include "simulation/recursive_sums.hpp"

#include <bit>

namespace mpress::simulation {
namespace {

/// Who takes part between folding in and folding out: places 0 to p - 1, of which the first r have
/// two ranks each.
class Folded {
 public:
  explicit Folded(int size)
      : places(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        remainder(size - places) {}

  int levels() const { return std::countr_zero(static_cast<unsigned>(places)); }
  int rounds() const { return levels() + (remainder > 0 ? 2 : 0); }
  /// The round after folding in.
  int begin() const { return remainder > 0 ? 1 : 0; }

  bool has_two(int place) const { return place < remainder; }
  /// An even rank of the remainder: it hands over what it brings.
  bool waits(int rank) const { return rank < 2 * remainder && rank % 2 == 0; }
  int place(int rank) const { return rank < 2 * remainder ? rank / 2 : rank - remainder; }
  /// Who acts for a place.
  int rank(int place) const { return has_two(place) ? 2 * place + 1 : place + remainder; }
  /// The first rank of a place; that of `places` is one past the last rank.
  int first(int place) const { return has_two(place) ? 2 * place : place + remainder; }

  int places;
  int remainder;
};

}  // namespace

Schedule recursive_halving_reduce_scatter(const SumTask& task, int rank) {
  Builder builder = builder_of(task, Reduction::reduce_scatter, rank);
  const Folded folded(task.size);
  const int last = folded.rounds() - 1;
  const auto add_blocks = [&](int begin, int end) {
    for (int block = begin; block < end; ++block) builder.block(block);
  };
  if (folded.waits(rank)) {
    add_blocks(0, task.size);
    builder.send(rank + 1, 0);
    builder.block(rank);
    builder.receive(rank + 1, last);
    return builder.finish(folded.rounds());
  }
  const int place = folded.place(rank);
  if (folded.has_two(place)) {
    add_blocks(0, task.size);
    builder.combine(rank - 1, 0);
  }
  int round = folded.begin();
  for (int distance = folded.places / 2; distance > 0; distance /= 2, ++round) {
    const auto add_half = [&](int of) {
      const int first = of & ~(distance - 1);
      add_blocks(folded.first(first), folded.first(first + distance));
    };
    const int peer = place ^ distance;
    add_half(peer);
    builder.send(folded.rank(peer), round);
    add_half(place);
    builder.combine(folded.rank(peer), round);
  }
  if (folded.has_two(place)) {
    builder.block(rank - 1);
    builder.send(rank - 1, last);
  }
  return builder.finish(folded.rounds());
}

Schedule recursive_doubling_allreduce(const SumTask& task, int rank) {
  Builder builder = builder_of(task, Reduction::allreduce, rank);
  const Folded folded(task.size);
  const int last = folded.rounds() - 1;
  if (folded.waits(rank)) {
    builder.block(0);
    builder.send(rank + 1, 0);
    builder.block(0);
    builder.receive(rank + 1, last);
    return builder.finish(folded.rounds());
  }
  const int place = folded.place(rank);
  if (folded.has_two(place)) {
    builder.block(0);
    builder.combine(rank - 1, 0);
  }
  int round = folded.begin();
  for (int distance = 1; distance < folded.places; distance *= 2, ++round) {
    const int peer = folded.rank(place ^ distance);
    builder.block(0);
    builder.send(peer, round);
    builder.block(0);
    builder.combine(peer, round);
  }
  if (folded.has_two(place)) {
    builder.block(0);
    builder.send(rank - 1, last);
  }
  return builder.finish(folded.rounds());
}

}  // namespace mpress::simulation
