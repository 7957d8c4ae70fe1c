#include "mpi/collectives/neighbours/raw_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/job/job.hpp"
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

/// Of shorter blocks this process sends no frame. Its thresholds are its own.
std::size_t least_framed(const Job& job, const Team& team) {
  if (!job.chunks.is_open()) return wire::min_frame_bytes;
  const auto comm = mpi::glance_at_comm(comm_of(team));
  const std::size_t anywhere = job.policy.least_bytes_anywhere(job.config.threshold);
  return std::max(wire::min_frame_bytes, comm ? comm->hints.threshold(anywhere) : 0);
}

/// Does it lie where the CPU may look at it?
bool is_on_host(Job& job, const Part& part) {
  return part.bytes == 0 || !gpu::in_use() ||
         locate(job, part.data, *mpi::glance_at_type(part.type)).is_readable;
}

/// Of shorter ones MPI takes no longer.
bool is_to_pack(const Part& part) {
  return part.bytes >= wire::min_frame_bytes && !mpi::glance_at_type(part.type)->contiguous;
}

/// From here on sends begin before receives.
constexpr std::size_t least_sent_first = 32 << 10;

}  // namespace

bool RawBlocks::goes_raw(int peer, const Part& part) {
  trace::Reason reason = trace::Reason::threshold;
  if (part.bytes >= least_framed_) {
    const SendArguments arguments{part.data, part.count, part.type, peer, comm_of(team_)};
    const SendCall call{called_, family_, true, {}, coding_};
    const auto found = certain_reason(job_, call, arguments);
    if (!found) return false;
    reason = *found;
  }
  reasons_.push_back(reason);
  longest_ = std::max(longest_, part.bytes);
  if (is_to_pack(part)) packed_bytes_ += part.bytes;
  return is_on_host(job_, part);
}

bool RawBlocks::may_serve() {
  if (way_.is_packed || way_.schedule.rounds > 1) return false;
  reasons_.clear();
  packed_bytes_ = longest_ = 0;
  least_framed_ = least_framed(job_, team_);
  // Messages that are paced, or traced, are looked at one by one.
  const bool are_looked_at = job_.pacer.active() || trace::timeline.is_on();
  const auto is_short = [&](const Part& part) {
    return !are_looked_at || part.bytes < wire::min_frame_bytes;
  };
  const auto may_send = [&](int peer, const Part& part) {
    return is_short(part) && goes_raw(peer, part);
  };
  const auto may_receive = [&](int, const Part& part) {
    if (is_to_pack(part)) packed_bytes_ += part.bytes;
    return is_short(part) && is_on_host(job_, part);
  };
  if (!for_each(exchange_, way_, way_.schedule.sends, false, may_send) ||
      !for_each(exchange_, way_, way_.schedule.receives, true, may_receive)) {
    return false;
  }
  if (packed_bytes_ > 0) packed_ = job_.pool.take(packed_bytes_);
  return packed_bytes_ == 0 || packed_;
}

/// Receives come first, so that what others send finds them; those of long blocks then hold up
/// what this process sends for longer than they save.
void RawBlocks::start() {
  are_looked_at_ = false;
  framed_.clear();
  outcome_ = {};
  packed_used_ = 0;
  messages_.start(way_.schedule.blocks.size(), way_.schedule.blocks.size());
  const bool are_long = longest_ >= least_sent_first;
  if (are_long) send_all();
  receive_all();
  if (!are_long) send_all();
}

/// Room for a block without its gaps.
Part RawBlocks::take_packed(std::size_t bytes) {
  std::byte* const at = packed_.data() + std::exchange(packed_used_, packed_used_ + bytes);
  return {at, static_cast<MPI_Count>(bytes), MPI_BYTE, bytes};
}

void RawBlocks::receive_all() {
  std::size_t number = 0;
  packed_receives_.assign(way_.schedule.blocks.size(), nullptr);
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int peer, const Part& part) {
    Part place = part;
    if (packed_bytes_ > 0 && is_to_pack(part)) {
      place = take_packed(part.bytes);
      packed_receives_[number] = static_cast<std::byte*>(place.data);
    }
    messages_.receive(number++, place, peer, true);
    return true;
  });
}

void RawBlocks::send_all() {
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const Part& part) {
    Part ready = part;
    if (packed_bytes_ > 0 && is_to_pack(part)) {
      ready = take_packed(part.bytes);
      messages_.note(copy_part(job_, part, ready));
    }
    messages_.send(number++, ready, peer);
    return true;
  });
}

bool RawBlocks::advance() {
  if (!messages_.have_come(way_.schedule.blocks.size()) || !messages_.are_sent()) return false;
  if (!are_looked_at_) look();
  return advance_framed();
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
    const std::size_t bytes = messages_.received_bytes(number);
    std::byte* const packed = packed_receives_[number++];
    if (bytes == 0) return true;
    const std::byte* const data = packed ? packed : static_cast<std::byte*>(part.data);
    if (is_frame(data, bytes)) {  // which no block is that has come with gaps
      take(part, peer, data, bytes);
      return true;
    }
    // Calls of MPI's own take less than they have room for, as MPI does.
    if (bytes != part.bytes && !exchange_.edges) messages_.note(MPI_ERR_TRUNCATE);
    if (packed) {
      const auto items = static_cast<MPI_Count>(bytes);
      messages_.note(copy_part(job_, {packed, items, MPI_BYTE, bytes}, part));
    }
    messages_.count(trace::Direction::receive, peer, bytes, bytes);
    return true;
  });
}

bool RawBlocks::is_frame(const std::byte* data, std::size_t bytes) const {
  wire::Header header;
  return wire::is_frame_size(bytes) &&
         wire::read_header(data, bytes, job_.nonce, header) != wire::Parse::raw;
}

/// A message of `bytes` bytes that MPI has put at `data`: in the program's buffer, or beside it.
void RawBlocks::take(const Part& part, int peer, const std::byte* data, std::size_t bytes) {
  Framed& framed = *framed_.emplace_back(std::make_unique<Framed>(job_));
  framed.status.MPI_SOURCE = peer;
  mpi::calls().Status_set_elements_x(&framed.status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  mpi::calls().Status_set_cancelled(&framed.status, 0);
  framed.receive.describe(called_, {part.data, part.count, part.type, comm_of(team_), &outcome_});
  if (framed.receive.collects(data, bytes, peer)) return;
  framed.receive.settle(data, bytes, framed.status);
}

bool RawBlocks::advance_framed() {
  bool are_over = true;
  for (const auto& framed : framed_) {
    if (framed->is_over) continue;
    Receive& receive = framed->receive.core();
    framed->is_over = !receive.incoming() || receive.advance();
    if (framed->is_over) messages_.note(framed->receive.deliver(framed->status));
    are_over = are_over && framed->is_over;
  }
  return are_over;
}

bool RawBlocks::needs_host() const {
  return std::ranges::any_of(framed_, [](const auto& framed) {
    const Incoming* const incoming = framed->receive.core().incoming();
    return !framed->is_over && incoming && incoming->needs_host();
  });
}

bool RawBlocks::wait() {
  const bool has_waited = messages_.wait_for(way_.schedule.blocks.size());
  return messages_.wait_until_sent() || has_waited;
}

}  // namespace mpress::engine
