#include "coll/neighbourhoods/raw_blocks.hpp"

#include <algorithm>
#include <utility>

#include "coll/blocks/copy_block.hpp"
#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/decision.hpp"
#include "message/messaging.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// Calls `visit(peer, block)` for the blocks of transfers, in their order, while it returns true.
/// Returns whether it always has.
bool for_each(const Exchange& exchange, const Way& way,
              const std::vector<schedule::Transfer>& transfers, bool is_received, auto visit) {
  for (const schedule::Transfer& transfer : transfers) {
    for (const schedule::Block block : way.schedule.blocks_of(transfer)) {
      const BlockData& data =
          is_received ? exchange.incoming(way, block) : exchange.outgoing(block);
      if (!visit(transfer.peer, data)) return false;
    }
  }
  return true;
}

/// Of shorter blocks this process sends no frame. Its thresholds are its own.
std::size_t least_framed(const Messaging& messaging, const Team& team) {
  if (!messaging.chunks.is_open()) return wire::min_frame_bytes;
  const std::size_t anywhere = messaging.policy.least_bytes_anywhere(messaging.config.threshold);
  return std::max(wire::min_frame_bytes, team.settings().hints.threshold(anywhere));
}

/// Does it lie where the CPU may look at it?
bool is_on_host(Messaging& messaging, const BlockData& data) {
  return data.bytes == 0 || !gpu::in_use() ||
         locate(messaging, data.data, *data.layout).is_readable;
}

/// Of shorter ones MPI takes no longer.
bool is_to_pack(const BlockData& data) {
  return data.bytes >= wire::min_frame_bytes && !data.layout->contiguous;
}

/// From here on sends begin before receives.
constexpr std::size_t least_sent_first = 32 << 10;

}  // namespace

bool RawBlocks::goes_raw(int peer, const BlockData& data) {
  trace::Reason reason = trace::Reason::threshold;
  if (data.bytes >= least_framed_) {
    const SendCall call{called_, family_, true, {}, coding_};
    Message message = block_message(call, data, team_.settings(), {});
    message.peer = team_.world_rank(peer);
    const auto found = certain_reason(messaging_, message);
    if (!found) return false;
    reason = *found;
  }
  reasons_.push_back(reason);
  longest_ = std::max(longest_, data.bytes);
  if (is_to_pack(data)) packed_bytes_ += data.bytes;
  return is_on_host(messaging_, data);
}

bool RawBlocks::may_serve() {
  if (way_.is_packed || way_.schedule.rounds > 1) return false;
  reasons_.clear();
  packed_bytes_ = longest_ = 0;
  least_framed_ = least_framed(messaging_, team_);
  // Messages that are paced, or traced, are looked at one by one.
  const bool are_looked_at = messaging_.pacer.active() || trace::timeline.is_on();
  const auto is_short = [&](const BlockData& data) {
    return !are_looked_at || data.bytes < wire::min_frame_bytes;
  };
  const auto may_send = [&](int peer, const BlockData& data) {
    return is_short(data) && (data.bytes == 0 || goes_raw(peer, data));
  };
  const auto may_receive = [&](int, const BlockData& data) {
    if (data.bytes == 0) return true;
    if (is_to_pack(data)) packed_bytes_ += data.bytes;
    return is_short(data) && data.data && is_on_host(messaging_, data);
  };
  if (!for_each(exchange_, way_, way_.schedule.sends, false, may_send) ||
      !for_each(exchange_, way_, way_.schedule.receives, true, may_receive)) {
    return false;
  }
  if (packed_bytes_ > 0) packed_ = messaging_.pool.take(packed_bytes_);
  return packed_bytes_ == 0 || packed_;
}

/// Receives come first, so that what others send finds them; those of long blocks then hold up
/// what this process sends for longer than they save.
void RawBlocks::start() {
  outcome_ = {};
  packed_used_ = 0;
  messages_.start(way_.schedule.blocks.size(), way_.schedule.blocks.size());
  const bool are_long = longest_ >= least_sent_first;
  if (are_long) send_all();
  receive_all();
  if (!are_long) send_all();
}

/// Room for a block without its gaps.
BlockData RawBlocks::take_packed(const BlockData& data) {
  return packed_at(packed_.data() + std::exchange(packed_used_, packed_used_ + data.bytes), data);
}

void RawBlocks::receive_all() {
  std::size_t number = 0;
  packed_receives_.assign(packed_bytes_ > 0 ? way_.schedule.blocks.size() : 0, {});
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int peer, const BlockData& data) {
    const bool is_packed = packed_bytes_ > 0 && is_to_pack(data);
    if (is_packed) packed_receives_[number] = take_packed(data);
    const BlockData& place = is_packed ? packed_receives_[number] : data;
    messages_.receive_likely_raw(number++, place, peer, outcome_);
    return true;
  });
}

void RawBlocks::send_all() {
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const BlockData& data) {
    if (packed_bytes_ > 0 && is_to_pack(data)) {
      const BlockData ready = take_packed(data);
      messages_.note(copy_block(messaging_, data, ready));
      messages_.send(number++, ready, peer);
    } else {
      messages_.send(number++, data, peer);
    }
    return true;
  });
}

bool RawBlocks::advance() {
  if (!messages_.have_come(way_.schedule.blocks.size()) || !messages_.are_sent()) return false;
  finish();
  return true;
}

/// Counts what was sent, and unpacks what has come.
void RawBlocks::finish() {
  std::size_t number = 0;
  for_each(exchange_, way_, way_.schedule.sends, false, [&](int peer, const BlockData& data) {
    if (data.bytes > 0) {
      messages_.count(trace::Direction::send, peer, data.bytes, data.bytes, Codec::none,
                      reasons_[number++]);
    }
    return true;
  });
  number = 0;
  for_each(exchange_, way_, way_.schedule.receives, true, [&](int, const BlockData& data) {
    const std::size_t i = number++;
    const std::size_t bytes = messages_.received_bytes(i);
    if (bytes == 0) return true;
    // Calls of MPI's own take less than they have room for, as MPI does.
    if (bytes != data.bytes && !exchange_.edges) messages_.note(Status::truncated);
    if (packed_bytes_ > 0 && packed_receives_[i].data) {
      BlockData come = packed_receives_[i];
      come.count = static_cast<std::int64_t>(bytes / come.layout->size);
      come.bytes = bytes;
      messages_.note(copy_block(messaging_, come, data));
    }
    return true;
  });
}

bool RawBlocks::wait() {
  const bool has_waited = messages_.wait_for(way_.schedule.blocks.size());
  return messages_.wait_until_sent() || has_waited;
}

}  // namespace mpress::engine
