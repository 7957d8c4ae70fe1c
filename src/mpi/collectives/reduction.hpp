// What the arguments of a call tell of a reduction.
#pragma once

#include <optional>

#include "coll/reduce/reduction.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

/// Empty: one that mpress does not know.
std::optional<codec::Combine> combination_of(MPI_Op op);

/// Empty where mpress does not serve such a reduction: sums, minima, maxima and products of f32 and
/// f64, and sums of complex numbers. Does not look where buffers lie.
std::optional<Reduction> reduction_of(const Operands& operands);

}  // namespace mpress::engine
