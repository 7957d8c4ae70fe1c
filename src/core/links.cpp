#include "core/links.hpp"

namespace mpress::engine {

void Links::set_ranks(const std::vector<link::RankProcess>& ranks,
                      const std::vector<Addresses>& addresses, const link::Limits& limits) {
  const char* other_way = nullptr;  // what the links behind may be
  for (std::size_t at = link::count_between_devices; at-- > 0;) {
    std::vector<link::Neighbour> neighbours;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      neighbours.push_back({ranks[i].rank, ranks[i].process, addresses[i][at]});
    link::DeviceLink& link = *between_devices()[at];
    link.set_ranks(neighbours, limits, other_way);
    if (link.is_open() && link::between_devices[at].as_other_way) {
      other_way = link::between_devices[at].as_other_way;
    }
  }
}

}  // namespace mpress::engine
