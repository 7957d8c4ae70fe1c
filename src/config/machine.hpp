// What a profile is valid for: the hardware, the MPI, and the way its messages take.
#pragma once

#include <cstddef>
#include <string>

namespace mpress {

/// The processor's model and those of the GPUs, as the kernel names them; no driver is asked.
const std::string& hardware();

/// The settings of the environment by which the user chooses the transport of an MPI (mpi_name()),
/// NAME=VALUE each; empty where it is left to MPI.
std::string transport_settings(const std::string& mpi);

/// Name and number of an MPI library, of the first line that it says of itself.
std::string mpi_name(const std::string& library_version);

/// Bytes of all caches of the last level of this host's processors, as the kernel tells them; 0:
/// it does not.
std::size_t last_level_cache();

/// Where the profile of this hardware is kept if the user does not say: below XDG_CACHE_HOME, or
/// ~/.cache. Empty where there is no home.
std::string default_profile_path();

}  // namespace mpress
