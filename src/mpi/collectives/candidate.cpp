// The part of a collective call's routing that asks no other rank: what its arguments, and facts
// that all ranks share, tell of it.

#include <algorithm>
#include <atomic>
#include <string>

#include "mpi/collectives/operand_blocks.hpp"
#include "mpi/collectives/reduction.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"
#include "trace/message.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

// Reasons for which MPI serves a call; Record::count_left() tells them apart by their addresses.
constexpr char switched_off[] = "switched off";
constexpr char of_one_rank[] = "a communicator of one rank";
constexpr char is_wrong[] = "arguments that MPI refuses";
constexpr char is_first[] = "no call that blocks came before it on its communicator";

/// Bytes of the blocks of a call of which all ranks know them.
struct BlockBytes {
  std::size_t mean = 0, longest = 0;
};

BlockBytes block_bytes(const Operands& operands) {
  const bool sends = operands.send.reads.number() > 0;
  const Operand& receive = operands.receive;
  const Blocks& data = receive.writes.number() > 0 ? receive.writes : receive.reads;
  const Blocks& blocks = sends && data.number() < 2 ? operands.send.reads : data;
  const int number = blocks.is_even() ? std::min(blocks.number(), 1) : blocks.number();
  BlockBytes found;
  for (int i = 0; i < number; ++i) {
    const Block block = blocks[i];
    const auto type = block.count > 0 ? mpi::type_info(block.type) : nullptr;
    if (!type) continue;
    const std::size_t bytes = type->size * static_cast<std::size_t>(block.count);
    found.mean += bytes;
    found.longest = std::max(found.longest, bytes);
  }
  if (number > 0) found.mean /= static_cast<std::size_t>(number);
  return found;
}

/// Bytes of each rank's contribution; 0 where mpress does not serve such a reduction.
std::size_t reduced_bytes(const Operands& operands) {
  const std::optional<Reduction> reduction = reduction_of(operands);
  if (!reduction || operands.size < 2) return 0;
  return static_cast<std::size_t>(reduction->count) * element_size(reduction->type);
}

/// Is it a reduction that has the same bits in any order of what is brought? Members say so before
/// the communicator's team is made.
bool is_reproducible(const Job& job, const Collective& call, const Operands& operands) {
  if (!call.reduces || !may_be_reproducible(job) || operands.size < 2 ||
      job.config.is_disabled(call.family))
    return false;
  const std::optional<Reduction> reduction = reduction_of(operands);
  if (!reduction || reduction->count == 0) return false;
  const auto comm = mpi::comm_info(operands.comm);
  if (!comm) return false;
  const auto* const team = Teams::made_for(*comm);
  return team ? team->hints().is_reproducible() : comm->hints.reproducible(job.config.reproducible);
}

/// May a team be made without waiting for it?
bool may_be_made(const Job& job, const mpi::CommInfo& comm) {
  return comm.attached() || comm.comm == MPI_COMM_WORLD || job.collectives.makes_teams;
}

}  // namespace

void tell_unserved(const Job& job, const Operands& operands, const char* why) {
  static std::atomic<bool> has_told{false};
  const auto comm = mpi::comm_info(operands.comm);
  const bool is_first = comm && !comm->world_ranks.empty() && comm->world_ranks[0] == job.rank;
  if (!is_first || has_told.exchange(true)) return;
  trace::say(
      "rank " + std::to_string(job.rank) +
      ": the bits of a reduction may depend on the order of the ranks, as MPI serves it: " + why);
}

void tell_of_immediate(const Job& job) {
  static std::atomic<bool> has_told{false};
  if (job.rank != 0 || has_told.exchange(true)) return;
  const bool may_ever = job.collectives.immediate;
  trace::say(may_ever ? "a collective call that does not block is the MPI's, as it is the first on "
                        "its communicator: a blocking one before it has mpress serve both"
                      : "collective calls that do not block are the MPI's, as nothing lets mpress "
                        "proceed while this MPI waits: start it with MPI_THREAD_MULTIPLE, or "
                        "MPRESS_PROGRESS=thread");
}

const char* why_never(const Job& job, const Collective& call) {
  if (job.config.is_disabled(call.family)) return switched_off;
  if (!job.chunks.is_open()) {
    return "no chunks: MPRESS_CHUNK=0, or this MPI, or no mpress in MPI_Init";
  }
  return job.config.spec.codec == Codec::none ? "no codec is set" : does_not_pay;
}

bool may_have_kernels(const Config& config) { return config.link != "mpi"; }

bool may_be_reproducible(const Job& job) {
  return job.config.reproducible || job.hint_bounds.any_reproducible();
}

Candidate candidate_by_size(const Job& job, const Collective& call, Form form, bool is_asked,
                            std::size_t bytes, std::size_t all_bytes) {
  Candidate found;
  found.bytes = found.longest = bytes;
  // With what is shorter MPI is faster, wherever it lies.
  found.is_long_enough = call.has_own_counts || bytes >= least_long(job.config);
  const Gains& gains = is_asked ? job.collectives.most : job.collectives.usual;
  found.may_compress = gains.any() && found.is_long_enough;
  // A reduction takes two messages, and work between them, each of which waits for a turn where
  // ranks share a device.
  const std::size_t least =
      call.reduces ? job.least_reduced_bytes : job.links.least_bytes_between_devices;
  const bool are_served = call.reduces ? job.collectives.reductions : job.collectives.on_devices;
  const bool is_long = call.has_own_counts || bytes >= least;
  found.is_short = !is_long && call.reduces && all_bytes > 0 && form == Form::blocking;
  found.may_be_on_devices =
      are_served && (is_long || (found.is_short && may_have_kernels(job.config)));
  return found;
}

Candidate candidate_or_leave(Job& job, const Collective& call, Form form,
                             const Operands& operands) {
  const auto by_mpi = [&](const char* why) {
    job.record.count_left(call.op, why);
    return Candidate{};
  };
  if (!operands.known) return by_mpi("an inter-communicator, or arguments that MPI refuses");
  if (job.config.is_disabled(call.family)) return by_mpi(switched_off);
  const bool is_kept = is_reproducible(job, call, operands);
  if (is_kept && !job.chunks.is_open()) {
    tell_unserved(job, operands, "without chunks mpress serves no collective calls");
  }
  // A rank that blocks in MPI could not send what another's MPI_Wait needs.
  if (form != Form::blocking && !job.collectives.immediate) {
    if (is_kept) tell_unserved(job, operands, "it does not block, and there is no progress thread");
    return by_mpi(nothing_proceeds);
  }
  // In place, where every rank says so.
  if (call.family == Family::alltoall && operands.receive.reads.number() > 0) {
    return by_mpi("in place");
  }
  const std::size_t all_bytes = call.reduces ? reduced_bytes(operands) : 0;
  BlockBytes blocks;
  if (call.reduces) {
    blocks.mean = blocks.longest = all_bytes / static_cast<std::size_t>(operands.size);
  } else if (!call.has_own_counts) {
    blocks = block_bytes(operands);
  }
  const std::size_t bytes = blocks.mean;
  Candidate found =
      candidate_by_size(job, call, form, operands.asked.has_value(), bytes, all_bytes);
  found.longest = blocks.longest;
  found.is_reproducible = is_kept && job.chunks.is_open();
  // Members that ask for different codecs get an error also where nothing would be compressed.
  const bool is_compared = call.reduces && operands.asked && all_bytes > 0 &&
                           found.is_long_enough && job.chunks.is_open();
  if (!found.may_compress && !found.may_be_on_devices && !found.is_reproducible && !is_compared) {
    const bool is_uncombined = call.reduces && !reduction_of(operands);
    return by_mpi(operands.size == 1 ? of_one_rank
                  : is_uncombined    ? not_combined
                                     : why_raw(found.is_long_enough));
  }
  // MPI tells what is wrong, at once: here other ranks' blocks would be waited for.
  if (!is_sound(operands)) return by_mpi(is_wrong);
  auto comm = mpi::comm_info(operands.comm);
  if (comm && comm->world_ranks.size() == 1) return by_mpi(of_one_rank);
  if (!comm || !job.teams.may_have(*comm)) {
    return by_mpi("mpress does not reach all ranks of its communicator");
  }
  const auto size = static_cast<int>(comm->world_ranks.size());
  if (operands.root < 0 || operands.root >= size) return by_mpi(is_wrong);
  found.is_brief = found.is_short && !found.is_long_enough && !found.is_reproducible;
  // Where no mode is told, and no tag is kept.
  found.is_decided_at_once =
      call.has_own_counts && form != Form::persistent && !found.may_be_on_devices;
  // MPI's part would be on the private communicator.
  if (operands.topology && form == Form::immediate && !found.is_decided_at_once &&
      !job.collectives.keeps_topologies) {
    return by_mpi("a neighbourhood, under an MPI that duplicates none without blocking");
  }
  // MPI's part is begun at once, as long as all know how.
  if (found.is_decided_at_once && form == Form::immediate && !job.teams.is_settled(*comm)) {
    return by_mpi(is_first);
  }
  if (form == Form::immediate && !may_be_made(job, *comm)) {
    if (is_kept) tell_unserved(job, operands, is_first);
    if (operands.asked && operands.asked->spec) tell_of_immediate(job);
    return by_mpi(is_first);
  }
  found.comm = std::move(comm);
  return found;
}

}  // namespace mpress::engine
