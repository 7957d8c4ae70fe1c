// Reading an MPI_Info.
#pragma once

#include <optional>
#include <string>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// The value of a key; nothing where the info lacks it.
std::optional<std::string> info_value(MPI_Info info, const char* key);

}  // namespace mpress::mpi
