#include "schedule/builder.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mpress::schedule {
void require_at_least(std::string_view name, int value, int least) {
  if (value >= least) return;
  throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                              ": expected at least " + std::to_string(least));
}

void require_rank(std::string_view name, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw std::invalid_argument(std::string(name) + " is " + std::to_string(rank) +
                              ": expected 0 to " + std::to_string(size - 1));
}

Builder::Builder(const Task& task, Op op, int rank) {
  if (task.op != op) throw std::invalid_argument("task.op is not what the algorithm is for");
  require_at_least("task.size", task.size, 1);
  require_at_least("task.segments", task.segments, 1);
  require_rank("task.root", task.root, task.size);
  require_rank("rank", rank, task.size);
}

Builder::Builder(int size, int rank) {
  require_at_least("size", size, 1);
  require_rank("rank", rank, size);
}

void Builder::add(std::vector<Transfer>& transfers, int peer, int round, bool combines) {
  const std::size_t count = schedule_.blocks.size() - first_;
  if (count == 0) return;
  transfers.push_back({peer, round, static_cast<std::uint32_t>(first_),
                       static_cast<std::uint32_t>(count), combines});
  first_ += count;
}

Schedule Builder::finish(int rounds) {
  const auto is_earlier = [](const Transfer& a, const Transfer& b) { return a.round < b.round; };
  for (auto* transfers : {&schedule_.sends, &schedule_.receives})
    if (!std::is_sorted(transfers->begin(), transfers->end(), is_earlier))
      std::stable_sort(transfers->begin(), transfers->end(), is_earlier);
  schedule_.rounds = rounds;
  return std::move(schedule_);
}

}  // namespace mpress::schedule
