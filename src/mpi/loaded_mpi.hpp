// Which MPI library a process has loaded. Knows none of their headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpress::mpi {

/// MPI libraries whose handles and statuses agree, so that one compilation serves them all.
enum class Family { mpich, openmpi, abi, unknown };

struct LoadedMpi {
  void* handle = nullptr;  ///< from dlopen, for dlsym; never closed
  std::string path;
  Family family = Family::unknown;
  std::string version;  ///< the first line of what it says of itself
};

/// The libraries of this process that define MPI, wherever they were loaded to: an interpreter may
/// have loaded MPI where a global look-up does not reach. A symbol counts for the object that
/// defines it; those that stand in for MPI calls, such as mpress and profilers, do not count.
std::vector<LoadedMpi> loaded_mpis();

/// Does `symbol` belong to the object that is loaded at `base`, and not to one it depends on?
bool is_defined_by(const void* symbol, std::uintptr_t base);

/// "mpich", "openmpi" or "abi", as in the names of the backends; "unknown".
const char* family_name(Family family);

/// Ends a process in which MPI cannot run, with one line on standard error from the first rank.
[[noreturn]] void stop_before_mpi(const std::string& message);

}  // namespace mpress::mpi
