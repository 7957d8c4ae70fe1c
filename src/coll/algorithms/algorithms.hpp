// The rows of the table of algorithms (coll/algorithm.cpp), each defined in the file of its name.
#pragma once

#include "coll/algorithm.hpp"

namespace mpress::engine {

/// Blocks that kernels of all members store in each other's memory.
extern const Algorithm symmetric_move;
/// A long broadcast by the same, unit by unit.
extern const Algorithm symmetric_broadcast;
/// A reduction of elements as they are, by kernels of all members.
extern const Algorithm symmetric_reduction;
/// A reduction whose inputs and pieces members read in slots of the peer link, host by host.
extern const Algorithm linked_reduction;
/// A reduction by messages of pieces, encoded or not.
extern const Algorithm reduction_by_blocks;
/// A neighbourhood's blocks as messages.
extern const Algorithm neighbours;
/// Blocks as messages, by a schedule.
extern const Algorithm blocks;
/// Pairs that are long enough as messages, and MPI's own call for all others.
extern const Algorithm pairs;
/// MPI's own call.
extern const Algorithm by_mpi;

/// Why kernels of all members serve no such call; null: they may. Members start persistent calls in
/// any order, so those cannot be agreed on.
inline WhyNot why_no_kernels(const AgreedCall& call) {
  if (!call.team.may_have_kernels) return "MPRESS_LINK=mpi";
  if (call.is_reproducible) return "sums of the same bits in any order of the ranks";
  if (call.form == Form::persistent) return "a persistent call";
  if (call.has_topology) return "a neighbourhood";
  if (call.team.hosts > 1) return "several hosts";
  if (!call.team.has_shared_memory) return "no memory that all members' GPUs reach";
  if (!call.encodes && !call.on_devices) return "no member has had GPU buffers";
  if (call.encodes && (call.codec != Codec::none || !call.team.may_see_devices)) {
    return "its data may be encoded";
  }
  return nullptr;
}

/// Why no messages of mpress's serve all of a call; null: they may.
inline WhyNot why_no_blocks(const AgreedCall& call) {
  if (!call.encodes && !call.on_devices) return "compression does not pay, no GPU buffers";
  if (call.is_short && !call.encodes) return "too short for messages";
  return nullptr;
}

}  // namespace mpress::engine
