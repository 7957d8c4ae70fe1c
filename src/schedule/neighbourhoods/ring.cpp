#include "schedule/neighbourhoods/ring.hpp"

#include <algorithm>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/neighbourhoods/routes.hpp"

namespace mpress::schedule {

Schedule ring_alltoall(const Neighbourhood& neighbourhood, int rank, int base) {
  const Grid& grid = neighbourhood.grid();
  const std::int64_t ranks = grid.ranks();
  Builder builder(grid.ranks(), rank);
  require_at_least("base", base, 2);

  struct Distance {
    int origin, neighbour;
    std::int64_t distance;
  };
  std::vector<Distance> all;
  std::int64_t greatest = 0;
  std::vector<int> coordinates(static_cast<std::size_t>(grid.dimensions()));
  for (int origin = 0; origin < grid.ranks(); ++origin) {
    grid.coordinates(origin, coordinates);
    for (int i = 0; i < neighbourhood.count(); ++i) {
      const int target = neighbourhood.target(coordinates, i);
      if (target == Grid::none || target == origin) continue;
      const std::int64_t distance = (target - origin + ranks) % ranks;
      all.push_back({origin, i, distance});
      greatest = std::max(greatest, distance);
    }
  }

  int round = 0;
  for (std::int64_t unit = 1; unit <= greatest; unit *= base) {
    if (std::ranges::none_of(all, [&](const Distance& one) { return one.distance / unit % base; }))
      continue;
    for (int digit = 1; digit < base && digit * unit <= greatest; ++digit) {
      const std::int64_t hop = digit * unit;
      for (const bool is_sent : {true, false}) {
        const std::int64_t holder = is_sent ? rank : (rank - hop + ranks) % ranks;
        for (const Distance& one : all)
          if (one.distance / unit % base == digit &&
              (one.origin + one.distance % unit) % ranks == holder)
            builder.block(neighbour_block(neighbourhood, one.origin, one.neighbour));
        if (is_sent)
          builder.send(static_cast<int>((rank + hop) % ranks), round);
        else
          builder.receive(static_cast<int>(holder), round);
      }
    }
    ++round;
  }
  return builder.finish(round);
}

}  // namespace mpress::schedule
