#include "schedule/hosts.hpp"

#include <algorithm>
#include <unordered_map>

namespace mpress::schedule {

Hosts::Hosts(std::span<const int> host_of_rank) {
  std::unordered_map<int, int> numbers;
  std::vector<int> counts;
  for (const int name : host_of_rank) {
    const auto [found, is_new] = numbers.try_emplace(name, static_cast<int>(counts.size()));
    if (is_new) counts.push_back(0);
    host_.push_back(found->second);
    place_.push_back(counts[static_cast<std::size_t>(found->second)]++);
  }
  first_.push_back(0);
  for (const int count : counts) {
    first_.push_back(first_.back() + count);
    most_ = std::max(most_, count);
  }
  members_.resize(host_.size());
  for (int rank = 0; rank < ranks(); ++rank)
    members_[static_cast<std::size_t>(position(rank))] = rank;
}

std::span<const int> Hosts::members(int host) const {
  const auto index = static_cast<std::size_t>(host);
  const auto first = static_cast<std::size_t>(first_[index]);
  return std::span(members_).subspan(first, static_cast<std::size_t>(first_[index + 1]) - first);
}

int Hosts::others_below(int rank, int host) const {
  const std::span<const int> ranks = members(host);
  const auto below = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return rank - static_cast<int>(below);
}

}  // namespace mpress::schedule
