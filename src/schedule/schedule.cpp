#include "schedule/schedule.hpp"

#include <algorithm>
#include <utility>

namespace mpress::schedule {

Block Task::blocks() const {
  const auto ranks = static_cast<Block>(size);
  switch (op) {
    case Op::bcast: return static_cast<Block>(segments);
    case Op::alltoall: return ranks * ranks;
    default: return ranks;
  }
}

int Task::origin(Block block) const {
  switch (op) {
    case Op::bcast:
    case Op::scatter: return root;
    case Op::alltoall: return static_cast<int>(block / static_cast<Block>(size));
    default: return static_cast<int>(block);
  }
}

bool Task::is_wanted(Block block, int rank) const {
  if (origin(block) == rank) return false;
  const auto own = static_cast<Block>(rank);
  switch (op) {
    case Op::scatter: return block == own;
    case Op::gather: return rank == root;
    case Op::alltoall: return block % static_cast<Block>(size) == own;
    default: return true;
  }
}

Schedule reversed(Schedule schedule) {
  std::swap(schedule.sends, schedule.receives);
  for (auto* transfers : {&schedule.sends, &schedule.receives}) {
    std::reverse(transfers->begin(), transfers->end());
    for (Transfer& transfer : *transfers) transfer.round = schedule.rounds - 1 - transfer.round;
  }
  return schedule;
}

Schedule restricted(Schedule schedule, const std::function<bool(Block)>& is_there) {
  for (auto* transfers : {&schedule.sends, &schedule.receives}) {
    for (Transfer& transfer : *transfers) {
      const auto begin = schedule.blocks.begin() + transfer.first;
      const auto end = std::remove_if(begin, begin + transfer.count,
                                      [&](Block block) { return !is_there(block); });
      transfer.count = static_cast<std::uint32_t>(end - begin);
    }
    std::erase_if(*transfers, [](const Transfer& transfer) { return transfer.count == 0; });
  }
  return schedule;
}

}  // namespace mpress::schedule
