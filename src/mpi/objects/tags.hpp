#pragma once

#include <cstdint>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// Every MPI has so many tags.
inline constexpr std::uint64_t least_tags = 32768;

/// How many this one has, as MPI_COMM_WORLD tells.
inline std::uint64_t tags_of_world() {
  int* highest = nullptr;
  int known = 0;
  calls().Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &known);
  return known ? static_cast<std::uint64_t>(*highest) + 1 : least_tags;
}

}  // namespace mpress::mpi
