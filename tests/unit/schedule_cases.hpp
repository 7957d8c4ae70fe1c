// What the tests of schedules have in common: the algorithms, and what is checked of each plan.
#pragma once

#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "schedule/moves/bruck.hpp"
#include "schedule/moves/linear.hpp"
#include "schedule/moves/pairwise.hpp"
#include "schedule/moves/recursive.hpp"
#include "schedule/moves/ring.hpp"
#include "schedule/moves/scatter_allgather.hpp"
#include "schedule/moves/tree.hpp"
#include "schedule_simulator.hpp"

namespace schedule_cases {

using namespace mpress::schedule;
using schedule_simulator::Plan;
using schedule_simulator::Runner;
using schedule_simulator::Volume;

inline std::mt19937& generator() {
  static std::mt19937 engine(19);
  return engine;
}

inline int random_int(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(generator());
}

/// ceil(log_k n), and the digits of v that are not zero: as the headers have them.
inline int log_up(int n, int k) {
  int log = 0;
  for (long power = 1; power < n; power *= k) ++log;
  return log;
}
inline int nonzero_digits(int v, int k) {
  int count = 0;
  for (; v > 0; v /= k) count += v % k != 0;
  return count;
}
inline int ceil_of(int a, int b) { return (a + b - 1) / b; }

/// c(n, k): children of the root.
inline Block children(int n, int k) {
  if (n == 1) return 0;
  const int levels = log_up(n, k);
  long power = 1;
  for (int i = 1; i < levels; ++i) power *= k;
  return static_cast<Block>((levels - 1) * (k - 1) + (n - 1) / power);
}

enum class Sizes { any, powers_of_two };
enum class Segments { any, one_a_rank };

/// An algorithm with its parameter, and the formulas of its header, of n > 1 ranks and s segments.
/// With one rank nothing is to be done.
struct Algorithm {
  std::string name;
  Op op;
  std::function<Schedule(const Task&, int)> make;
  std::function<Volume(int n, int s)> formula;
  int most;  ///< ranks that are tried: with more, the simulation takes long
  Sizes sizes = Sizes::any;
  Segments segments = Segments::any;
};

/// Of each rank to each: as many blocks as the simulator can hold for all ranks.
constexpr int most_quadratic = 1024;
constexpr int most_alltoall = 384;

inline std::vector<Algorithm> algorithms() {
  const auto blocks = [](auto count) { return static_cast<Block>(count); };
  std::vector<Algorithm> all;
  const auto add = [&](Algorithm algorithm) { all.push_back(std::move(algorithm)); };

  add({"linear_bcast", Op::bcast, linear_bcast,
       [=](int n, int s) { return Volume{s, blocks(s * (n - 1)), blocks(s * (n - 1))}; }, 4096});
  add({"chain_bcast", Op::bcast, chain_bcast,
       [=](int n, int s) { return Volume{n + s - 2, blocks(s), blocks(s * (n - 1))}; }, 4096});
  add({"binomial_bcast", Op::bcast, binomial_bcast,
       [=](int n, int s) {
         return Volume{s * log_up(n, 2), blocks(s * log_up(n, 2)), blocks(s * (n - 1))};
       },
       4096});
  for (const int k : {2, 3, 4, 8})
    add({"knomial_bcast " + std::to_string(k), Op::bcast,
         [=](const Task& task, int rank) { return knomial_bcast(task, rank, k); },
         [=](int n, int s) {
           return Volume{s * log_up(n, k), blocks(s) * children(n, k), blocks(s * (n - 1))};
         },
         4096});
  add({"two_shot_bcast", Op::bcast, two_shot_bcast,
       [=](int n, int s) {
         const int turns = ceil_of(s, n - 1);
         return Volume{turns + (n > 2), blocks(std::max(s, turns * (n - 2))), blocks(s * (n - 1))};
       },
       most_quadratic});
  add({"scatter_ring_bcast", Op::bcast, scatter_ring_bcast,
       [=](int n, int) {
         return Volume{log_up(n, 2) + n - 1, blocks(2 * (n - 1)), blocks(n * (n - 1))};
       },
       most_quadratic, Sizes::any, Segments::one_a_rank});
  add({"scatter_recursive_doubling_bcast", Op::bcast, scatter_recursive_doubling_bcast,
       [=](int n, int) {
         return Volume{2 * log_up(n, 2), blocks(2 * (n - 1)), blocks(n * (n - 1))};
       },
       most_quadratic, Sizes::powers_of_two, Segments::one_a_rank});

  const auto subtrees = [=](int n, int k) {
    Block sum = 0;
    for (int v = 0; v < n; ++v) sum += blocks(nonzero_digits(v, k));
    return sum;
  };
  for (const int window : {1, 3, 1 << 20}) {
    const auto volume = [=](int n, int) {
      return Volume{ceil_of(n - 1, window), blocks(n - 1), blocks(n - 1)};
    };
    const std::string by = " by " + std::to_string(window);
    add({"linear_scatter" + by, Op::scatter,
         [=](const Task& task, int rank) { return linear_scatter(task, rank, window); }, volume,
         4096});
    add({"linear_gather" + by, Op::gather,
         [=](const Task& task, int rank) { return linear_gather(task, rank, window); }, volume,
         4096});
  }
  for (const int k : {2, 3, 5, 64}) {
    const auto volume = [=](int n, int) {
      return Volume{log_up(n, k), blocks(n - 1), subtrees(n, k)};
    };
    add({"knomial_scatter " + std::to_string(k), Op::scatter,
         [=](const Task& task, int rank) { return knomial_scatter(task, rank, k); }, volume, 4096});
    add({"knomial_gather " + std::to_string(k), Op::gather,
         [=](const Task& task, int rank) { return knomial_gather(task, rank, k); }, volume, 4096});
  }
  const auto by_two = [=](int n, int) {
    return Volume{log_up(n, 2), blocks(n - 1), subtrees(n, 2)};
  };
  add({"binomial_scatter", Op::scatter, binomial_scatter, by_two, 4096});
  add({"binomial_gather", Op::gather, binomial_gather, by_two, 4096});

  const auto everywhere = [=](int rounds, int n) {
    return Volume{rounds, blocks(n - 1), blocks(n) * blocks(n - 1)};
  };
  add({"ring_allgather", Op::allgather, ring_allgather,
       [=](int n, int) { return everywhere(n - 1, n); }, most_quadratic});
  add({"recursive_doubling_allgather", Op::allgather, recursive_doubling_allgather,
       [=](int n, int) { return everywhere(log_up(n, 2), n); }, 2048, Sizes::powers_of_two});
  for (const int k : {2, 3, 7})
    add({"bruck_allgather " + std::to_string(k), Op::allgather,
         [=](const Task& task, int rank) { return bruck_allgather(task, rank, k); },
         [=](int n, int) { return everywhere(log_up(n, k), n); }, 2048});
  for (const int window : {1, 4, 63})
    add({"scattered_allgather by " + std::to_string(window), Op::allgather,
         [=](const Task& task, int rank) { return scattered_allgather(task, rank, window); },
         [=](int n, int) { return everywhere(ceil_of(n - 1, window), n); },
         window > 4 ? most_alltoall : most_quadratic});

  add({"pairwise_alltoall", Op::alltoall, pairwise_alltoall,
       [=](int n, int) { return everywhere(n - 1, n); }, most_alltoall});
  for (const int window : {1, 4, 63})
    add({"scattered_alltoall by " + std::to_string(window), Op::alltoall,
         [=](const Task& task, int rank) { return scattered_alltoall(task, rank, window); },
         [=](int n, int) { return everywhere(ceil_of(n - 1, window), n); }, most_alltoall});
  for (const int k : {2, 3, 7})
    add({"bruck_alltoall " + std::to_string(k), Op::alltoall,
         [=](const Task& task, int rank) { return bruck_alltoall(task, rank, k); },
         [=](int n, int) {
           return Volume{log_up(n, k), subtrees(n, k), blocks(n) * subtrees(n, k)};
         },
         most_alltoall});
  return all;
}

inline bool takes(const Algorithm& algorithm, int size) {
  return algorithm.sizes == Sizes::any || is_power_of_two(size);
}

inline std::string text(const std::string& name, const Task& task) {
  return name + ", " + std::to_string(task.size) + " ranks, root " + std::to_string(task.root) +
         ", segments " + std::to_string(task.segments);
}

inline void expect_none(const std::string& error, const std::string& where) {
  if (error.empty()) return;
  std::fprintf(stderr, "%s: %s\n", where.c_str(), error.c_str());
  ++check::failures;
}

inline Runner random_runner(int most_window) {
  Runner runner;
  runner.window = random_int(1, most_window);
  runner.slots = random_int(1, 3);
  runner.is_in_order = random_int(0, 1) == 1;
  runner.awaits_reader = random_int(0, 1) == 1;
  runner.varies = random_int(0, 1) == 1;
  return runner;
}

inline void check_run(const Plan& plan, const Runner& runner, const std::string& where) {
  std::vector<schedule_simulator::Run> runs;
  runs.emplace_back(plan, runner);
  expect_none(schedule_simulator::drive(runs, plan.task.size, generator()),
              where + ", window " + std::to_string(runner.window) + ", slots " +
                  std::to_string(runner.slots));
}

/// The rules, the formulas, and runners: one round at a time with one slot, and any other.
inline void check_plan(const Plan& plan, const Volume& expected, const std::string& name) {
  const std::string where = text(name, plan.task);
  const std::string error = schedule_simulator::Verifier(plan).verify();
  expect_none(error, where);
  if (!error.empty()) return;
  const Volume wanted = plan.task.size == 1 ? Volume{} : expected;
  if (plan.volume() != wanted)
    expect_none(
        schedule_simulator::text(plan.volume()) + ": expected " + schedule_simulator::text(wanted),
        where);
  check_run(plan, {.is_in_order = true, .awaits_reader = true}, where);
  check_run(plan, random_runner(plan.task.size <= 64 ? 70 : 4), where);
}

}  // namespace schedule_cases
