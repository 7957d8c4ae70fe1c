// Many schedules at once, on communicators that overlap: processes enter them in different orders,
// get on in any order, and always get to the end. Either each operation has its slots, or all of
// them share one slot from each process to each, which is taken only for a reader that can empty
// it.

#include <algorithm>
#include <numeric>

#include "schedule/moves/hierarchical.hpp"
#include "schedule_cases.hpp"

using namespace schedule_cases;
using schedule_simulator::index;
using schedule_simulator::Run;
using schedule_simulator::SharedSlots;

namespace {

/// An algorithm that knows who shares a host, on random hosts.
Plan hierarchical_plan(int size) {
  std::vector<int> mapping;
  for (int rank = 0; rank < size; ++rank) mapping.push_back(random_int(0, size / 3));
  const Hosts hosts(mapping);
  const int root = random_int(0, size - 1);
  switch (random_int(0, 4)) {
    case 0: {
      const Task task{Op::bcast, size, root, random_int(1, 5)};
      return Plan(task, [&](int rank) { return hierarchical_bcast(task, rank, hosts, {3, 2}); });
    }
    case 1: {
      const Task task{Op::scatter, size, root};
      return Plan(task, [&](int rank) { return hierarchical_scatter(task, rank, hosts); });
    }
    case 2: {
      const Task task{Op::gather, size, root};
      return Plan(task, [&](int rank) { return hierarchical_gather(task, rank, hosts); });
    }
    case 3: {
      const Task task{Op::allgather, size};
      return Plan(task, [&](int rank) { return hierarchical_allgather(task, rank, hosts); });
    }
    default: {
      const Task task{Op::alltoall, size};
      return Plan(task, [&](int rank) { return hierarchical_alltoall(task, rank, hosts, 2); });
    }
  }
}

Plan random_plan(const std::vector<Algorithm>& all, int processes) {
  int size = random_int(1, processes);
  if (random_int(0, 3) == 0) return hierarchical_plan(size);
  const Algorithm& algorithm = all[index(random_int(0, static_cast<int>(all.size()) - 1))];
  while (!takes(algorithm, size)) size &= size - 1;
  Task task{algorithm.op, size};
  const bool is_bcast = task.op == Op::bcast;
  if (is_bcast || task.op == Op::scatter || task.op == Op::gather)
    task.root = random_int(0, size - 1);
  if (is_bcast)
    task.segments = algorithm.segments == Segments::one_a_rank ? size : random_int(1, 6);
  return Plan(task, [&](int rank) { return algorithm.make(task, rank); });
}

enum class Slots {
  own,     ///< each operation has its own
  shared,  ///< one from each process to each, taken only for a reader that can empty it
  eager,   ///< the same, taken by whoever comes first
};

/// How many of `times` random jobs do not end.
int hanging_jobs(int times, int most_processes, int most_operations, Slots kind) {
  const std::vector<Algorithm> all = algorithms();
  int hanging = 0;
  for (int time = 0; time < times; ++time) {
    const int processes = random_int(2, most_processes);
    const int operations = random_int(2, most_operations);
    std::vector<Plan> plans;
    for (int i = 0; i < operations; ++i) {
      plans.push_back(random_plan(all, processes));
      const std::string error = schedule_simulator::Verifier(plans.back()).verify();
      expect_none(error, "a plan of many");
      if (!error.empty()) return times;
    }
    std::vector<int> order(index(processes));
    std::iota(order.begin(), order.end(), 0);
    SharedSlots slots(processes, kind == Slots::eager);
    std::vector<Run> runs;
    for (const Plan& plan : plans) {
      std::shuffle(order.begin(), order.end(), generator());
      const std::vector<int> members(order.begin(), order.begin() + plan.task.size);
      runs.emplace_back(plan, random_runner(5), members, kind == Slots::own ? nullptr : &slots);
    }
    if (!schedule_simulator::drive(runs, processes, generator()).empty()) ++hanging;
  }
  return hanging;
}

}  // namespace

int main() {
  for (const Slots kind : {Slots::own, Slots::shared}) {
    CHECK(hanging_jobs(3000, 8, 6, kind) == 0);
    CHECK(hanging_jobs(50, 24, 40, kind) == 0);
  }
  // Why operations must not wait for one another's slots; and the simulator sees who hangs.
  CHECK(hanging_jobs(100, 24, 40, Slots::eager) > 0);
  return check::failures == 0 ? 0 : 1;
}
