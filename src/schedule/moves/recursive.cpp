#include "schedule/moves/recursive.hpp"

#include <stdexcept>
#include <string>

#include "schedule/builder.hpp"

namespace mpress::schedule {

Schedule recursive_doubling_allgather(const Task& task, int rank) {
  Builder builder(task, Op::allgather, rank);
  if (!is_power_of_two(task.size))
    throw std::invalid_argument("task.size is " + std::to_string(task.size) +
                                ": recursive doubling expects a power of two");
  int round = 0;
  for (int distance = 1; distance < task.size; distance *= 2, ++round) {
    const int peer = rank ^ distance;
    const auto add_half = [&](int of) {
      const int first = of & ~(distance - 1);
      for (int block = first; block < first + distance; ++block) builder.block(block);
    };
    add_half(rank);
    builder.send(peer, round);
    add_half(peer);
    builder.receive(peer, round);
  }
  return builder.finish(round);
}

}  // namespace mpress::schedule
