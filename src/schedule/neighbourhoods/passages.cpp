#include "schedule/neighbourhoods/passages.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mpress::schedule {

Passages::Came::Came(std::size_t most) : places_(std::bit_ceil(2 * most + 2), {0, own}) {
  shift_ = 64 - std::countr_zero(places_.size());
}

/// That of the block, or the free one where it would be.
std::size_t Passages::Came::place_of(Block block) const {
  std::size_t place = (block * 0x9E3779B97F4A7C15) >> shift_;  // Knuth's multiplicative hash
  while (places_[place].second != own && places_[place].first != block) {
    place = (place + 1) & (places_.size() - 1);
  }
  return place;
}

void Passages::Came::add(Block block, std::uint32_t entry) {
  auto& place = places_[place_of(block)];
  if (place.second == own) place = {block, entry};
}

std::uint32_t Passages::Came::find(Block block) const { return places_[place_of(block)].second; }

Passages::Passages(const Schedule& schedule)
    : from(schedule.blocks.size(), own),
      part(schedule.blocks.size()),
      first_(schedule.blocks.size() + 1),
      came_(schedule.blocks.size()) {
  const auto for_each = [&](const std::vector<Transfer>& transfers, auto visit) {
    for (const Transfer& transfer : transfers)
      for (std::uint32_t i = transfer.first; i < transfer.first + transfer.count; ++i) visit(i);
  };
  for_each(schedule.receives, [&](std::uint32_t i) {
    from[i] = i;
    came_.add(schedule.blocks[i], i);
  });
  for_each(schedule.sends, [&](std::uint32_t i) { from[i] = came_.find(schedule.blocks[i]); });
}

Passages Passages::of_alltoall(const Neighbourhood& neighbourhood, const Schedule& schedule,
                               std::span<const int> coordinates) {
  Passages passages(schedule);
  const auto count = static_cast<Block>(neighbourhood.count());
  std::vector<Block> sources(neighbourhood.count() > 0 ? count : 0);
  for (int i = 0; i < neighbourhood.count(); ++i) {
    sources[static_cast<std::size_t>(i)] = static_cast<Block>(neighbourhood.source(coordinates, i));
  }
  for (std::size_t i = 0; i < schedule.blocks.size(); ++i) {
    const Block origin = schedule.blocks[i] / count;
    const Block neighbour = schedule.blocks[i] - origin * count;
    passages.part[i] = static_cast<std::uint32_t>(neighbour);
    if (passages.from[i] == i && sources[neighbour] == origin)
      passages.slots_.push_back(static_cast<int>(neighbour));
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
