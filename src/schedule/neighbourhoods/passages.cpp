#include "schedule/neighbourhoods/passages.hpp"

namespace mpress::schedule {

Passages::Passages(const Schedule& schedule)
    : from(schedule.blocks.size(), own),
      part(schedule.blocks.size()),
      first_(schedule.blocks.size() + 1) {
  came_.reserve(schedule.blocks.size());
  const auto for_each = [&](const std::vector<Transfer>& transfers, auto visit) {
    for (const Transfer& transfer : transfers)
      for (std::uint32_t i = transfer.first; i < transfer.first + transfer.count; ++i) visit(i);
  };
  for_each(schedule.receives, [&](std::uint32_t i) {
    from[i] = i;
    came_.emplace(schedule.blocks[i], i);
  });
  for_each(schedule.sends, [&](std::uint32_t i) {
    const auto found = came_.find(schedule.blocks[i]);
    if (found != came_.end()) from[i] = found->second;
  });
}

Passages Passages::of_alltoall(const Neighbourhood& neighbourhood, const Schedule& schedule,
                               std::span<const int> coordinates) {
  Passages passages(schedule);
  const auto count = static_cast<Block>(neighbourhood.count());
  for (std::size_t i = 0; i < schedule.blocks.size(); ++i) {
    const auto neighbour = static_cast<int>(schedule.blocks[i] % count);
    passages.part[i] = static_cast<std::uint32_t>(neighbour);
    const int source = neighbourhood.source(coordinates, neighbour);
    if (passages.from[i] == i && static_cast<Block>(source) == schedule.blocks[i] / count)
      passages.slots_.push_back(neighbour);
    passages.first_[i + 1] = static_cast<std::uint32_t>(passages.slots_.size());
  }
  return passages;
}

Passages Passages::of_gather(const Neighbourhood& neighbourhood, const Schedule& schedule,
                             std::span<const int> coordinates) {
  Passages passages(schedule);
  std::unordered_multimap<Block, int> wanted;
  for (int i = neighbourhood.count() - 1; i >= 0; --i) {
    const int source = neighbourhood.source(coordinates, i);
    if (source != Grid::none) wanted.emplace(static_cast<Block>(source), i);
  }
  for (std::size_t i = 0; i < schedule.blocks.size(); ++i) {
    if (passages.from[i] == i) {
      const auto [begin, end] = wanted.equal_range(schedule.blocks[i]);
      for (auto at = begin; at != end; ++at) passages.slots_.push_back(at->second);
    }
    passages.first_[i + 1] = static_cast<std::uint32_t>(passages.slots_.size());
  }
  return passages;
}

}  // namespace mpress::schedule
