#include "engine/coll/neighbours/raw_blocks.hpp"

#include <algorithm>

#include "engine/job/job.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/objects/type_info.hpp"
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

}  // namespace

bool RawBlocks::may_serve(Job& job, const Context& context, const Exchange& exchange,
                          const Way& way) {
  if (way.is_packed || way.schedule.rounds > 1) return false;
  // Thresholds, codecs and what is learned are each process's own: only what no process can send a
  // frame of, or a header, is sure to be raw at the other end, too.
  const bool are_all_raw =
      job.chunks.is_open() && !job.watches_receives && !context.is_true_for_any(Fact::may_see_gpus);
  if (are_all_raw && !gpu::in_use()) return true;
  bool are_raw = true;
  const auto look = [&](int, const Part& part) {
    if (!are_all_raw && part.bytes >= wire::min_frame_bytes) are_raw = false;
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

void RawBlocks::wait_in_mpi() {
  messages_.wait_for(way_.schedule.blocks.size());
  messages_.wait_until_sent();
}

}  // namespace mpress::engine
