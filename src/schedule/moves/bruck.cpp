#include "schedule/moves/bruck.hpp"

#include <algorithm>

#include "schedule/builder.hpp"
#include "schedule/moves/knomial.hpp"

namespace mpress::schedule {
namespace {

/// visit(round, distance, width): partners at distances of digit * width, in each round.
template <class Visit>
void for_each_step(int size, int radix, Visit visit) {
  int round = 0;
  for (std::int64_t width = 1; width < size; width *= radix, ++round)
    for (std::int64_t distance = width; distance < size && distance < width * radix;
         distance += width)
      visit(round, static_cast<int>(distance), static_cast<int>(width));
}

}  // namespace

Schedule bruck_allgather(const Task& task, int rank, int radix) {
  Builder builder(task, Op::allgather, rank);
  require_at_least("radix", radix, 2);
  const int size = task.size;
  const Circle circle(size, rank);
  for_each_step(size, radix, [&](int round, int distance, int width) {
    const int count = std::min(width, size - distance);
    for (int place = 0; place < count; ++place) builder.block(circle.rank(place));
    builder.send(circle.rank(size - distance), round);
    for (int place = 0; place < count; ++place) builder.block(circle.rank(distance + place));
    builder.receive(circle.rank(distance), round);
  });
  return builder.finish(digits(size, radix));
}

Schedule bruck_alltoall(const Task& task, int rank, int radix) {
  Builder builder(task, Op::alltoall, rank);
  require_at_least("radix", radix, 2);
  const int size = task.size;
  const Circle circle(size, rank);
  for_each_step(size, radix, [&](int round, int distance, int width) {
    // Of the blocks whose distance has this digit, by what is still to go and what is behind them.
    const auto add_blocks = [&](int sender) {
      const Circle from_sender(size, sender);
      const std::int64_t stride = std::int64_t{width} * radix;
      for (std::int64_t ahead = distance; ahead < size; ahead += stride)
        for (int behind = 0; behind < width && ahead + behind < size; ++behind) {
          const int origin = from_sender.rank(behind == 0 ? 0 : size - behind);
          const int destination = from_sender.rank(static_cast<int>(ahead));
          builder.block(static_cast<Block>(origin) * static_cast<Block>(size) +
                        static_cast<Block>(destination));
        }
    };
    add_blocks(rank);
    builder.send(circle.rank(distance), round);
    const int from = circle.rank(size - distance);
    add_blocks(from);
    builder.receive(from, round);
  });
  return builder.finish(digits(size, radix));
}

}  // namespace mpress::schedule
