#include "engine/coll/route.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "engine/coll/stand_in.hpp"
#include "engine/job.hpp"
#include "mpi/type_info.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// Waits for the others' answers. MPI proceeds meanwhile: others may need what it has to send.
bool await(Job& job, const Context& context, Agreement& agreement) {
  job.progress.wait_until([&] {
    int found = 0;
    mpi::calls().Iprobe(MPI_ANY_SOURCE, context.block_tag(), context.comm(), &found,
                        MPI_STATUS_IGNORE);
    return agreement.advance();
  });
  return !agreement.failed();
}

/// Bytes of a block, of a call of which all ranks know them: where they differ, the mean.
std::size_t block_bytes(const Operands& operands) {
  const bool sends = operands.send.reads.number() > 0;
  const Operand& receive = operands.receive;
  const Blocks& data = receive.writes.number() > 0 ? receive.writes : receive.reads;
  const Blocks& blocks = sends && data.number() < 2 ? operands.send.reads : data;
  const int number = blocks.is_even() ? std::min(blocks.number(), 1) : blocks.number();
  std::size_t bytes = 0;
  for (int i = 0; i < number; ++i) {
    const Block block = blocks[i];
    const auto type = block.count > 0 ? mpi::type_info(block.type) : nullptr;
    if (type) bytes += type->size * static_cast<std::size_t>(block.count);
  }
  return number > 0 ? bytes / static_cast<std::size_t>(number) : 0;
}

/// As the call's arguments tell all ranks alike, and what they agreed on in MPI_Init.
struct May {
  bool compress = false;  ///< it may pay, wherever the buffers lie
  bool be_on_devices = false;
};

May may_serve(const Job& job, const Collective& call, const Operands& operands) {
  if (!operands.known || job.config.is_disabled(call.family)) return {};
  // In place, where every rank says so.
  if (call.family == Family::alltoall && operands.receive.reads.number() > 0) return {};
  const std::size_t bytes = call.has_own_counts ? 0 : block_bytes(operands);
  const bool is_long =
      !call.has_own_counts && bytes >= wire::min_frame_bytes && bytes >= job.config.threshold;
  // With what is shorter MPI is faster, wherever it lies.
  return {(job.collectives.within || job.collectives.between) && is_long,
          job.collectives.on_devices && (call.has_own_counts || bytes >= job.least_peer_bytes)};
}

/// By what all members have agreed on: a codec, and who shares a host.
bool may_pay(const Job& job, const Context& context) {
  const Spec spec = context.spec().value_or(job.config.spec);
  if (spec.codec == Codec::none && !job.config.force) return false;
  return context.hosts().count() > 1 ? job.collectives.between : job.collectives.within;
}

/// Is it a call at which members tell each other: 1, 2, 4, 8 ..., or a multiple of 1024?
bool tells_mode(std::uint64_t number) {
  constexpr std::uint64_t interval = 1024;
  return std::has_single_bit(number) || number % interval == 0;
}

}  // namespace

Route route_of(Job& job, const Collective& call, const Operands& operands,
               std::shared_ptr<mpi::CommInfo>& comm) {
  const May may = may_serve(job, call, operands);
  if (!may.compress && !may.be_on_devices) return {};
  comm = mpi::comm_info(operands.comm);
  if (!comm || !job.contexts.may_have(*comm)) return {};
  Context* const context = job.contexts.await(comm);
  if (!context || !context->is_ready()) return {};
  if (may.compress && may_pay(job, *context)) return {context};
  if (!may.be_on_devices || !context->is_true_for_any(Fact::may_see_gpus)) return {};
  const std::uint64_t number = context->next_call() + 1;
  if (context->has_devices()) return {context};
  if (!context->has_had_device()) {
    context->note_device(StandIn::is_needed(job, operands.send) ||
                         StandIn::is_needed(job, operands.receive));
  }
  if (!tells_mode(number)) return {};
  const std::array told{Word{Combine::bit_or, context->has_had_device() ? 1u : 0u}};
  const std::shared_ptr<Agreement> agreement = context->agreements().combine(told);
  if (!await(job, *context, *agreement)) return {nullptr, true};
  if (agreement->result()[0] != 0) context->set_has_devices();
  return {context->has_devices() ? context : nullptr};
}

}  // namespace mpress::engine
