// What a reduction combines, and which rank combines which elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/spec.hpp"
#include "coll/call.hpp"
#include "engine/coll/operands.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

/// Of a call's arguments.
struct Reduction : ReductionShape {
  const void* input;         ///< this rank's
  bool is_in_place = false;  ///< what it brings lies where results go

  MPI_Datatype mpi_type() const { return type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE; }
};

class Job;
struct Part;

/// Empty where mpress does not serve such a reduction: sums, minima, maxima and products of f32 and
/// f64, and sums of complex numbers. Does not look where buffers lie.
std::optional<Reduction> reduction_of(const Operands& operands);

/// The spec that encodes contributions, where the members agreed on one. Products bear no loss:
/// what an error of one factor does to them depends on all the others. Where the order of the ranks
/// is not to matter, szp's sums do.
Spec spec_for(const Reduction& reduction, const Spec& agreed, bool is_reproducible);

/// A block as long as the longest that `rank` contributes to a piece of another member's, of
/// pieces that begin so; at the beginning of `input`.
Part longest_contribution(const Reduction& reduction, const void* input,
                          std::span<const std::int64_t> begins, int rank);

}  // namespace mpress::engine
