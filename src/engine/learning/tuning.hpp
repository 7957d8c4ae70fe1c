// What the policy goes by: the profile of this machine, as far as there is one.
#pragma once

#include <array>
#include <string>

#include "config/config.hpp"
#include "policy/costs.hpp"

namespace mpress::engine {

class Job;

struct Tuning {
  policy::Costs costs;
  std::string source;  ///< for the report
  /// By medium: one sentence on what is assumed for lack of measurements, or empty.
  std::array<std::string, policy::medium_count> lacking;
};

/// Name and number of the MPI.
std::string own_mpi();

/// Are links to be measured in MPI_Init whose costs nothing tells?
bool measures_links(const Job& job);

/// And what they are like later, from the program's messages? What is forced to be compressed has
/// none that could go raw for that.
bool learns(const Job& job);

/// Reads the profile of the job's settings. Ends the process where the user named one that cannot
/// be read; says so where another one cannot be used.
Tuning tune(const Job& job);

}  // namespace mpress::engine
