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

/// Calls `visit(peer, part)` for the blocks of transfers, in their order, while it returns true.
/// Returns whether it always has.
bool for_each(const Exchange& exchange, const Way& way,
              const std::vector<schedule::Transfer>& transfers, bool is_received, auto visit) {
  for (const schedule::Transfer& transfer : transfers) {
    for (const schedule::Block block : way.schedule.blocks_of(transfer)) {
      const Part& part = is_received ? exchange.incoming(way, block) : exchange.outgoing(block);
      if (!visit(transfer.peer, part)) return false;
    }
  }
  return true;
}

/// Of shorter blocks no process sends a frame, or a header, wherever they lie. What is learned is
/// each process's own; thresholds, and which codecs and links there are, all share.
std::size_t least_framed(const Job& job, const Context& context) {
  if (!job.chunks.is_open()) return wire::min_frame_bytes;
  std::size_t least = SIZE_MAX;
  if (job.watches_receives) {
    const auto comm = mpi::glance_at_comm(context.comm());
    const std::size_t anywhere = job.policy.least_bytes_anywhere(job.config.threshold);
    least = comm ? comm->hints.threshold(anywhere) : 0;
  }
  if (context.is_true_for_any(Fact::may_see_gpus)) least = std::min(least, job.least_peer_bytes);
  return std::max(wire::min_frame_bytes, least);
}

bool is_on_host(Job& job, const Part& part) {
  return !gpu::in_use() || device_of(job, part.data, *mpi::type_info(part.type)) == gpu::host;
}

}  // namespace

bool RawBlocks::goes_raw(int peer, const Part& part, bool is_looked_at) {
  trace::Reason reason = trace::Reason::threshold;
  if (part.bytes >= wire::min_frame_bytes) {
    if (is_looked_at) return false;
    const SendArguments arguments{part.data, part.count, part.type, peer, context_.comm()};
    const SendCall call{called_, family_, true, {}, coding_};
    const auto found = certain_reason(job_, call, arguments);
    if (!found) return false;
    reason = *found;
  }
  reasons_.push_back(reason);
  return part.bytes == 0 || is_on_host(job_, part);
}

/// What may be a frame has to lie where it can be decoded: not strewn over a layout with gaps.
bool RawBlocks::can_bring(const Part& part, std::size_t least, bool sees_gpus) const {
  if (part.bytes == 0) return true;
  const bool may_be_frame =
      part.bytes >= least || (sees_gpus && job_.chunks.may_come_cut(part.bytes));
  if (may_be_frame && !mpi::type_info(part.type)->contiguous) return false;
  return is_on_host(job_, part);
}

bool RawBlocks::may_serve() {
  reasons_.clear();
  if (way_.is_packed || way_.schedule.rounds > 1) return false;
  // Messages that are paced, or traced, are looked at one by one.
  const bool is_looked_at = job_.pacer.active() || trace::timeline.is_on();
  const std::size_t least = is_looked_at ? wire::min_frame_bytes : least_framed(job_, context_);
  const bool sees_gpus = context_.is_true_for_any(Fact::may_see_gpus);
  return for_each(exchange_, way_, way_.schedule.sends, false,
                  [&](int peer, const Part& part) { return goes_raw(peer, part, is_looked_at); }) &&
         for_each(exchange_, way_, way_.schedule.receives, true, [&](int, const Part& part) {
           if (is_looked_at && part.bytes >= least) return false;
           return can_bring(part, least, sees_gpus);
         });
}

void RawBlocks::start() {
  are_looked_at_ = false;
  framed_.clear();
  outcome_ = {};
  messages_.start(way_.schedule.blocks.size(), way_.schedule.blocks.size());
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int peer, const Part& part) {
    messages_.receive(number++, part, peer, true);
    return true;
  });
  number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const Part& part) {
    messages_.send(number++, part, peer);
    return true;
  });
}

bool RawBlocks::advance() {
  if (!messages_.have_come(way_.schedule.blocks.size()) || !messages_.are_sent()) return false;
  if (!are_looked_at_) look();
  return advance_frames();
}

/// At all that has come, and counts it, and what was sent.
void RawBlocks::look() {
  are_looked_at_ = true;
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const Part& part) {
    messages_.count(trace::Direction::send, peer, part.bytes, part.bytes, Codec::none,
                    reasons_[number++]);
    return true;
  });
  number = 0;
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int peer, const Part& part) {
    const std::size_t bytes = messages_.brought_bytes(number++);
    if (bytes == 0) return true;  // an error that is noted, or there was nothing to come
    if (is_frame(part, bytes)) {
      take_frame(peer, part, bytes);
    } else {
      if (bytes != part.bytes) messages_.note(MPI_ERR_TRUNCATE);
      messages_.count(trace::Direction::receive, peer, part.bytes, bytes);
    }
    return true;
  });
}

bool RawBlocks::is_frame(const Part& part, std::size_t bytes) const {
  wire::Header header;
  return wire::is_frame_size(bytes) && mpi::type_info(part.type)->contiguous &&
         wire::read_header(part.data, bytes, job_.nonce, header) != wire::Parse::raw;
}

void RawBlocks::take_frame(int peer, const Part& part, std::size_t bytes) {
  auto framed = std::make_unique<Framed>();
  framed->status = MPI_Status{};
  framed->status.MPI_SOURCE = peer;
  mpi::calls().Status_set_elements_x(&framed->status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  mpi::calls().Status_set_cancelled(&framed->status, 0);
  const ReceiveArguments arguments{part.data, part.count, part.type, context_.comm(), &outcome_};
  if (!framed->receive.look_at_received(job_, called_, arguments)) {
    return messages_.note(MPI_ERR_TRUNCATE);
  }
  framed->receive.collects(job_, framed->status);
  framed_.push_back(std::move(framed));
}

bool RawBlocks::advance_frames() {
  bool are_over = true;
  for (const auto& framed : framed_) {
    if (framed->is_over) continue;
    Receive& receive = framed->receive;
    framed->is_over = !receive.is_collecting() || receive.collected();
    if (framed->is_over) messages_.note(receive.deliver(job_, framed->status));
    are_over = are_over && framed->is_over;
  }
  return are_over;
}

bool RawBlocks::needs_host() const {
  return std::ranges::any_of(
      framed_, [](const auto& framed) { return !framed->is_over && framed->receive.needs_host(); });
}

bool RawBlocks::wait_in_mpi() {
  const bool has_waited = messages_.wait_for(way_.schedule.blocks.size());
  return messages_.wait_until_sent() || has_waited;
}

}  // namespace mpress::engine
