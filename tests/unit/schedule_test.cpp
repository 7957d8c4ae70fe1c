// Every algorithm that knows nothing of hosts: all blocks arrive, once, within the rounds and the
// volume of its header, whatever the number of ranks, the root and the segments.
//
// Sizes to 64 are all tried, larger ones at random: to 4096 ranks where the work is linear, to
// fewer where it is quadratic (Algorithm::most), so that the program takes a few seconds.

#include <cstddef>
#include <stdexcept>

#include "schedule_cases.hpp"

using namespace schedule_cases;
using schedule_simulator::Verifier;

namespace {

bool has_root(Op op) { return op == Op::bcast || op == Op::scatter || op == Op::gather; }

std::vector<int> roots_of(const Algorithm& algorithm, int size) {
  if (!has_root(algorithm.op)) return {0};
  std::vector<int> roots;
  if (size <= 12)
    for (int root = 0; root < size; ++root) roots.push_back(root);
  else
    roots = {0, size - 1, random_int(1, size - 2)};
  return roots;
}

std::vector<int> segments_of(const Algorithm& algorithm, int size) {
  if (algorithm.op != Op::bcast) return {1};
  if (algorithm.segments == Segments::one_a_rank) return {size};
  if (size <= 12) return {1, 2, 5, size, 3 * size + 1};
  return {1, random_int(2, 20)};
}

void check(const Algorithm& algorithm, const Task& task) {
  const Plan plan(task, [&](int rank) { return algorithm.make(task, rank); });
  const bool is_alone = task.size == 1;
  check_plan(plan, is_alone ? Volume{} : algorithm.formula(task.size, task.segments),
             algorithm.name);
}

void every_size_to_64() {
  for (const Algorithm& algorithm : algorithms())
    for (int size = 1; size <= 64; ++size) {
      if (!takes(algorithm, size)) continue;
      for (const int root : roots_of(algorithm, size))
        for (const int segments : segments_of(algorithm, size))
          check(algorithm, {algorithm.op, size, root, segments});
    }
}

void random_larger_sizes() {
  for (const Algorithm& algorithm : algorithms()) {
    int size = random_int(65, algorithm.most);
    while (!takes(algorithm, size)) size &= size - 1;
    const int root = has_root(algorithm.op) ? random_int(0, size - 1) : 0;
    const bool is_cut = algorithm.op == Op::bcast;
    const int segments = algorithm.segments == Segments::one_a_rank ? size : random_int(1, 6);
    check(algorithm, {algorithm.op, size, root, is_cut ? segments : 1});
  }
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.most == 4096)
      check(algorithm, {algorithm.op, 4096, has_root(algorithm.op) ? 77 : 0});
}

/// As where some counts are zero, or too small to be worth a block.
void any_blocks_may_be_missing() {
  for (const Algorithm& algorithm : algorithms())
    for (const int size : {1, 2, 5, 8, 13, 16}) {
      if (!takes(algorithm, size)) continue;
      const int segments = algorithm.op == Op::bcast ? size : 1;
      const Task task{algorithm.op, size, has_root(algorithm.op) ? size / 2 : 0, segments};
      std::vector<bool> bits(task.blocks());
      for (std::size_t block = 0; block < bits.size(); ++block) bits[block] = random_int(0, 2) > 0;
      const auto is_there = [&](Block block) { return bool{bits[block]}; };
      const Plan plan(task,
                      [&](int rank) { return restricted(algorithm.make(task, rank), is_there); });
      const std::string where = text(algorithm.name + " restricted", task);
      expect_none(Verifier(plan, is_there).verify(), where);
      check_run(plan, {.is_in_order = true, .awaits_reader = true}, where);
    }
}

void tasks_count_their_blocks() {
  for (const Op op : {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall}) {
    const Task task{op, 5, has_root(op) ? 3 : 0, op == Op::bcast ? 7 : 1};
    CHECK(task.blocks() == (op == Op::bcast ? 7U : op == Op::alltoall ? 25U : 5U));
    std::size_t wanted = 0;
    for (Block block = 0; block < task.blocks(); ++block)
      for (int rank = 0; rank < task.size; ++rank) {
        if (task.is_wanted(block, rank)) ++wanted;
        CHECK(!task.is_wanted(block, task.origin(block)));
      }
    const bool has_few = op == Op::scatter || op == Op::gather;
    CHECK(wanted == (op == Op::bcast ? 28U : has_few ? 4U : 20U));
  }
  const Task large{Op::alltoall, 70000};
  CHECK(large.blocks() == 4900000000U && large.origin(large.blocks() - 1) == 69999);
}

void nobody_is_met_by_more_than_the_window() {
  for (const int size : {7, 16, 33})
    for (const int window : {1, 4}) {
      const Task task{Op::alltoall, size};
      for (int rank = 0; rank < size; ++rank) {
        const Schedule schedule = scattered_alltoall(task, rank, window);
        for (const auto* transfers : {&schedule.sends, &schedule.receives}) {
          std::vector<int> count(static_cast<std::size_t>(schedule.rounds));
          for (const Transfer& transfer : *transfers)
            CHECK(++count[static_cast<std::size_t>(transfer.round)] <= window);
        }
      }
    }
}

template <class Call>
bool is_refused(Call call, const std::string& name) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find(name) != std::string::npos;
  }
  return false;
}

void bad_input_is_named() {
  CHECK(is_refused([] { binomial_bcast({Op::bcast, 0}, 0); }, "task.size"));
  CHECK(is_refused([] { binomial_bcast({Op::bcast, 4}, 4); }, "rank"));
  CHECK(is_refused([] { binomial_bcast({Op::bcast, 4, -1}, 0); }, "task.root"));
  CHECK(is_refused([] { binomial_bcast({Op::bcast, 4, 0, 0}, 0); }, "task.segments"));
  CHECK(is_refused([] { binomial_bcast({Op::scatter, 4}, 0); }, "task.op"));
  CHECK(is_refused([] { knomial_gather({Op::gather, 4}, 0, 1); }, "radix"));
  CHECK(is_refused([] { linear_scatter({Op::scatter, 4}, 0, 0); }, "window"));
  CHECK(is_refused([] { scattered_alltoall({Op::alltoall, 4}, 0, 0); }, "window"));
  CHECK(is_refused([] { bruck_alltoall({Op::alltoall, 4}, 0, 1); }, "radix"));
  CHECK(is_refused([] { recursive_doubling_allgather({Op::allgather, 6}, 0); }, "task.size"));
  CHECK(is_refused([] { scatter_ring_bcast({Op::bcast, 6, 0, 5}, 0); }, "task.segments"));
  CHECK(is_refused([] { scatter_recursive_doubling_bcast({Op::bcast, 6, 0, 6}, 0); }, "task.size"));
}

/// What the simulator says of a right plan that `spoil` has changed.
template <class Spoil>
std::string verdict(const Algorithm& algorithm, const Task& task, Spoil spoil) {
  Plan plan(task, [&](int rank) { return algorithm.make(task, rank); });
  CHECK(Verifier(plan).verify().empty());
  spoil(plan);
  return Verifier(plan).verify();
}

bool says(const std::string& verdict, const std::string& text) {
  return verdict.find(text) != std::string::npos;
}

void the_simulator_finds_mistakes() {
  const Algorithm bruck{"",
                        Op::allgather,
                        [](const Task& task, int rank) { return bruck_allgather(task, rank); },
                        {},
                        0};
  const Task task{Op::allgather, 8};
  CHECK(says(verdict(bruck, task,
                     [](Plan& plan) {
                       Schedule& schedule = plan.ranks[3];
                       const Transfer& last = schedule.receives.back();
                       std::swap(schedule.blocks[last.first], schedule.blocks[last.first + 1]);
                     }),
             "expects other blocks"));
  CHECK(says(verdict(bruck, task, [](Plan& plan) { plan.ranks[3].receives.pop_back(); }),
             "is sent what it does not wait for"));
  CHECK(says(verdict(bruck, task, [](Plan& plan) { plan.ranks[3].sends.pop_back(); }),
             "waits for what nobody sends"));
  CHECK(says(verdict(bruck, task,
                     [](Plan& plan) {
                       for (Schedule& schedule : plan.ranks) {
                         schedule.sends.pop_back();
                         schedule.receives.pop_back();
                         --schedule.rounds;
                       }
                     }),
             "does not get all that it wants"));
  CHECK(says(verdict(bruck, task,
                     [](Plan& plan) {
                       for (Schedule& schedule : plan.ranks)
                         for (auto* transfers : {&schedule.sends, &schedule.receives})
                           (*transfers)[1].round = 0;
                     }),
             "sends what it does not have"));
  CHECK(says(verdict(bruck, task,
                     [](Plan& plan) {
                       for (Schedule& schedule : plan.ranks) ++schedule.rounds;
                     }),
             "nobody sends"));
  const Algorithm scatter{"",
                          Op::scatter,
                          [](const Task& task, int rank) { return linear_scatter(task, rank, 1); },
                          {},
                          0};
  CHECK(says(verdict(scatter, {Op::scatter, 3},
                     [](Plan& plan) {
                       plan.ranks[0].blocks = {2, 1};
                       plan.ranks[1].blocks = {2};
                       plan.ranks[2].blocks = {1};
                     }),
             "does not get all that it wants"));
  const Algorithm chain{"", Op::bcast, chain_bcast, {}, 0};
  CHECK(says(verdict(chain, {Op::bcast, 3, 0, 2},
                     [](Plan& plan) {
                       plan.ranks[1].blocks.assign(4, 0);
                       plan.ranks[0].blocks.assign(2, 0);
                       plan.ranks[2].blocks.assign(2, 0);
                     }),
             "gets a block twice"));
}

void the_simulator_finds_deadlocks() {
  // Two ranks, two operations' worth of rounds, which they see the other way round.
  const Task task{Op::bcast, 2, 0, 2};
  const Plan right(task, [&](int rank) { return linear_bcast(task, rank); });
  Plan wrong = right;
  wrong.ranks[1].sends = {{0, 0, 0, 1}};
  wrong.ranks[0].receives = {{1, 1, 0, 1}};
  wrong.ranks[0].sends[0].round = 2;
  wrong.ranks[0].sends[1].round = 3;
  const auto is_stuck = [](const Plan& plan, const Runner& runner) {
    std::vector<schedule_simulator::Run> runs;
    runs.emplace_back(plan, runner);
    return !schedule_simulator::drive(runs, plan.task.size, generator()).empty();
  };
  CHECK(!is_stuck(right, {.is_in_order = true, .awaits_reader = true}));
  CHECK(is_stuck(wrong, {.is_in_order = true, .awaits_reader = true}));
}

}  // namespace

int main() {
  tasks_count_their_blocks();
  bad_input_is_named();
  the_simulator_finds_mistakes();
  the_simulator_finds_deadlocks();
  nobody_is_met_by_more_than_the_window();
  any_blocks_may_be_missing();
  every_size_to_64();
  random_larger_sizes();
  return check::failures == 0 ? 0 : 1;
}
