#include "schedule/neighbourhoods/passages.hpp"

#include <algorithm>
#include <utility>

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
  std::vector<int> sources(static_cast<std::size_t>(neighbourhood.count()));
  for (int i = 0; i < neighbourhood.count(); ++i) {
    sources[static_cast<std::size_t>(i)] = neighbourhood.source(coordinates, i);
  }
  return of_sources(schedule, sources);
}

Passages Passages::of_sources(const Schedule& schedule, std::span<const int> sources) {
  Passages passages(schedule);
  std::vector<std::pair<Block, int>> wanted;  // by source, and then by place
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] == Grid::none) continue;
    wanted.emplace_back(static_cast<Block>(sources[i]), static_cast<int>(i));
  }
  std::ranges::sort(wanted);
  for (std::size_t i = 0; i < schedule.blocks.size(); ++i) {
    if (passages.from[i] == i) {
      const auto same =
          std::ranges::equal_range(wanted, schedule.blocks[i], {}, &std::pair<Block, int>::first);
      for (const auto& [source, place] : same) passages.slots_.push_back(place);
    }
    passages.first_[i + 1] = static_cast<std::uint32_t>(passages.slots_.size());
  }
  return passages;
}

}  // namespace mpress::schedule
