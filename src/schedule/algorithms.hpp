// The algorithms by name: which serve a collective, their schedules, and how much work one is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schedule/hosts.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// The values are part of the statistics' format.
enum class Algorithm : std::uint8_t {
  none,
  linear,            ///< broadcast, scatter, gather: from or to the root
  binomial,          ///< the same by trees
  chain,             ///< broadcast
  scatter_ring,      ///< broadcast
  scatter_doubling,  ///< broadcast, of a power of two
  two_shot,          ///< broadcast
  scattered,         ///< all-gather, all-to-all: `window` at once
  ring,              ///< all-gather
  doubling,          ///< all-gather, of a power of two
  bruck,             ///< all-gather, all-to-all
  by_host,           ///< all-gather: to each host once
  pairwise,          ///< all-to-all: one at once
  one_shot,          ///< reductions: each combines what all have made readable
  one_kernel,        ///< reductions: the same, or in two shots, by a kernel that waits for others
  combining,         ///< neighbourhoods: by messages of several blocks, which ranks pass on
  count_
};

inline constexpr const char* algorithm_names[] = {
    "none",     "linear",    "binomial",   "chain",    "scatter-ring", "scatter-doubling",
    "two-shot", "scattered", "ring",       "doubling", "bruck",        "by-host",
    "pairwise", "one-shot",  "one-kernel", "combining"};

inline const char* name(Algorithm algorithm) {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}

inline constexpr const char* op_names[] = {"bcast", "scatter", "gather", "allgather", "alltoall"};

inline const char* name(Op op) { return op_names[static_cast<std::size_t>(op)]; }

/// Of the one that is called so; empty where none is.
std::optional<Algorithm> algorithm_of(std::string_view name);
std::optional<Op> op_of(std::string_view name);

/// Those that serve a collective on some hosts.
std::vector<Algorithm> all_algorithms_of(Op op);

/// Does a rank pass on what it does not want? Such algorithms need memory for blocks of others, and
/// pay for short blocks alone: they are priced here, and the engine, which leaves short blocks to
/// MPI, does not run them.
bool passes_on_others(Algorithm algorithm, Op op);

/// Those of `algorithms` that the engine runs.
std::vector<Algorithm> run_only(std::vector<Algorithm> algorithms, Op op);

/// An algorithm with its parameters.
struct Method {
  Algorithm algorithm = Algorithm::none;
  int segments = 1;  ///< of a broadcast
  int window = 1;    ///< of linear scatters and gathers, and of scattered algorithms
};

/// Those that serve a collective on such hosts, in the order of the list above. Where several ranks
/// share each of several hosts, these are the algorithms of hierarchical.hpp: binomial and two_shot
/// broadcasts, linear and binomial scatters and gathers, by_host all-gathers, scattered and
/// pairwise (of one step a round) all-to-alls.
std::vector<Algorithm> algorithms_of(Op op, const Hosts& hosts);

/// The method has to be of algorithms_of(); else std::invalid_argument, as for wrong parameters.
Schedule make(const Method& method, const Task& task, int rank, const Hosts& hosts);

/// What takes time when all ranks go round by round: in each round the rank that has most to do,
/// or the host, between hosts.
struct Work {
  int rounds_within = 0;
  int rounds_between = 0;
  double within = 0;   ///< blocks that one rank sends, or receives, one after another, in its host
  double between = 0;  ///< the same of a host, to and from others
  int at_once = 1;     ///< partners of a rank in one round
  bool turns = false;  ///< to other partners, from round to round
};

/// With one host everything is within, with one rank a host everything between. Exact for hosts of
/// as many ranks each (and two_shot for whole turns: a multiple of its owners); else near to it.
/// `is_shared`: within a host, what several ranks get of one in one round counts once.
Work work(const Method& method, Op op, const Hosts& hosts, bool is_shared = false);

}  // namespace mpress::schedule
