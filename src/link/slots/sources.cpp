#include "link/slots/sources.hpp"

namespace mpress::link {

void Sources::open(const std::vector<Neighbour>& ranks, int own) {
  all_ = std::vector<Source>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    all_[i].rank = ranks[i].rank;
    all_[i].process = ranks[i].process;
    all_[i].address = ranks[i].address.as<HostMemory::Address>();
    all_[i].index = i;
    if (ranks[i].rank < 0) continue;
    const auto rank = static_cast<std::size_t>(ranks[i].rank);
    if (rank >= index_.size()) index_.resize(rank + 1, -1);
    if (ranks[i].rank == own) {
      own_index_ = i;
    } else if (all_[i].address.file >= 0) {
      index_[rank] = static_cast<int>(i);
    }
  }
}

}  // namespace mpress::link
