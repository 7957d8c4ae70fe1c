// What the policy goes by: the profile of this machine, as far as there is one.
#pragma once

#include <array>
#include <string>

#include "policy/costs.hpp"

namespace mpress::engine {

struct Runtime;

struct Tuning {
  policy::Costs costs;
  std::string source;  ///< for the report
  /// By medium: one sentence on what is assumed for lack of measurements, or empty.
  std::array<std::string, policy::medium_count> lacking;
  std::string error;  ///< the user named a profile that cannot be read; else empty
};

/// Are links to be measured in MPI_Init whose costs nothing tells?
bool measures_links(const Runtime& runtime);

/// And what they are like later, from the program's messages? What is forced to be compressed has
/// none that could go raw for that.
bool learns(const Runtime& runtime);

/// Reads the profile of the settings. Says so where one that the user did not name cannot be used.
Tuning tune(const Runtime& runtime);

}  // namespace mpress::engine
