// What a reduction combines, and which rank combines which elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "engine/coll/operands.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

struct Collective;
class Context;

/// Of a call's arguments; the same on all ranks.
struct Reduction {
  codec::Combine how;
  ElementType type;
  std::uint64_t count;       ///< elements that each rank brings
  std::uint64_t item;        ///< elements of an item of MPI's: 2, where that is complex
  const void* input;         ///< this rank's
  bool is_in_place = false;  ///< what it brings lies where results go

  MPI_Datatype mpi_type() const { return type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE; }
};

class Job;
struct Part;

/// Empty where mpress does not serve such a reduction: sums, minima, maxima and products of f32 and
/// f64, and sums of complex numbers. Does not look where buffers lie.
std::optional<Reduction> reduction_of(const Operands& operands);

/// Elements of each rank's piece: piece i is the elements from [i] to [i + 1]. Of
/// MPI_Reduce_scatter as the call says, else about even, in whole units of the codecs. Where
/// contributions and results travel at the same time (`overlaps`), the root of an MPI_Reduce to one
/// of three or more has none: contributions to its piece would reach it besides the others'
/// results. To one of two by memory of the host it has all: nothing crosses a bus twice.
std::vector<std::int64_t> pieces_of(const Collective& call, const Operands& operands,
                                    const Reduction& reduction, const Context& context,
                                    bool overlaps);

/// What of `input`, where a reduction's contribution begins, one of `ranks` members gets.
Part piece_of(const Reduction& reduction, void* input, int ranks);

}  // namespace mpress::engine
