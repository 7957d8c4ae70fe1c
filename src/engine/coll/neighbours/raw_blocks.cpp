#include "engine/coll/neighbours/raw_blocks.hpp"

#include <algorithm>
#include <cstdint>

#include "engine/job/job.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/objects/type_info.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// Calls `visit(peer, part)` for the blocks of transfers, in their order.
void for_each(const Exchange& exchange, const Way& way,
              const std::vector<schedule::Transfer>& transfers, bool is_received, auto visit) {
  for (const schedule::Transfer& transfer : transfers) {
    for (const schedule::Block block : way.schedule.blocks_of(transfer)) {
      visit(transfer.peer, is_received ? exchange.incoming(way, block) : exchange.outgoing(block));
    }
  }
}

/// Of shorter blocks no process sends a frame, or a header. What is learned is each process's own;
/// thresholds, and which codecs there are, all share.
std::size_t least_framed(const Job& job, const Context& context, const mpi::CommInfo& comm) {
  // Those in memory of devices follow headers, and paced or traced ones are looked at.
  if (!job.chunks.is_open() || context.is_true_for_any(Fact::may_see_gpus) || job.pacer.active() ||
      trace::timeline.is_on()) {
    return wire::min_frame_bytes;
  }
  if (!job.watches_receives) return SIZE_MAX;
  const std::size_t least = job.policy.least_bytes_anywhere(job.config.threshold);
  return std::max(wire::min_frame_bytes, comm.hints.threshold(least));
}

}  // namespace

bool RawBlocks::may_serve(Job& job, const Context& context, const mpi::CommInfo& comm,
                          const Exchange& exchange, const Way& way) {
  if (way.is_packed || way.schedule.rounds > 1) return false;
  const std::size_t least = least_framed(job, context, comm);
  if (least == SIZE_MAX && !gpu::in_use()) return true;
  bool are_raw = true;
  const auto look = [&](int, const Part& part) {
    if (part.bytes >= least) are_raw = false;
    if (!are_raw || !gpu::in_use() || part.bytes == 0) return;
    are_raw = device_of(job, part.data, *mpi::type_info(part.type)) == gpu::host;
  };
  for_each(exchange, way, way.schedule.sends, false, look);
  for_each(exchange, way, way.schedule.receives, true, look);
  return are_raw;
}

void RawBlocks::start() {
  messages_.start(way_.schedule.blocks.size(), way_.schedule.blocks.size());
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.receives, true,
           [&](int peer, const Part& part) { messages_.receive(number++, part, peer); });
  number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false,
           [&](int peer, const Part& part) { messages_.send(number++, part, peer); });
}

bool RawBlocks::advance() {
  if (!messages_.have_come(way_.schedule.blocks.size()) || !messages_.are_sent()) return false;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const Part& part) {
    messages_.count(trace::Direction::send, peer, part.bytes, part.bytes);
  });
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int peer, const Part& part) {
    messages_.count(trace::Direction::receive, peer, part.bytes, part.bytes);
  });
  return true;
}

bool RawBlocks::wait_in_mpi() {
  const bool has_waited = messages_.wait_for(way_.schedule.blocks.size());
  return messages_.wait_until_sent() || has_waited;
}

}  // namespace mpress::engine
