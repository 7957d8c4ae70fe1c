// Send staging of the host link: host memory of this process's that readers have pinned, who has
// room there, and what the sender says of its slots.

#include <algorithm>
#include <string>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/host/host_link.hpp"
#include "link/sizes.hpp"
#include "trace/message.hpp"

namespace mpress::link {
void HostLink::advance() {
  std::lock_guard lock(sending_);
  reclaim(reclaimed_first);
}

/// Pieces of send staging that every reader has pinned, plus one; 0: one has had no message yet, or
/// cannot be reached.
std::uint32_t HostLink::opened_by_all(std::span<const int> readers) const {
  std::uint32_t opened = UINT32_MAX;
  for (const int rank : readers) {
    if (!may_reach(rank)) return 0;
    const std::uint32_t by = own().opened[index_of(rank)].load(std::memory_order_acquire);
    if (by == HostSegment::unreachable) return 0;
    opened = std::min(opened, by);
  }
  return opened;
}

bool HostLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (wanted.chunks == 0 || wanted.device == gpu::host ||
      wanted.chunks > HostSegment::most_slots / wanted.readers.size()) {
    return false;
  }
  const std::uint32_t opened = opened_by_all(wanted.readers);
  if (opened == 0) return false;
  const std::uint64_t each = rounded(std::max<std::size_t>(wanted.bytes, 1), slot_alignment);
  Transfer planned{0, static_cast<std::uint32_t>(wanted.chunks),
                   static_cast<std::uint32_t>(wanted.readers.size()), each};
  if (wanted.window < wanted.chunks) planned.window = static_cast<std::uint32_t>(wanted.window);
  if (each > limit_ / planned.places()) return false;
  const std::uint64_t total = planned.bytes();
  const auto may_hold = [&] {
    return !wanted.account || wanted.may_exceed || wanted.account->has_room(total);
  };
  const auto reserve_now = [&] {
    if (!may_hold()) return false;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(opened - 1, staging_.size()); ++i) {
      if (staging_[i].free.fits(total)) return reserve_in(i, wanted, planned);
    }
    return false;
  };
  std::lock_guard lock(sending_);
  const auto reclaim_some = [this](std::size_t count) { reclaim(count); };
  if (attempt_reserving(full_looks_, sent_, reclaim_some, reserve_now)) {
    transfer = planned;
    return true;
  }
  if (!may_hold()) return false;
  const bool will_fit = std::any_of(staging_.begin(), staging_.end(), [&](const Staging& staging) {
    return staging.free.fits(total);  // once it is pinned
  });
  if (!will_fit) grow(wanted.device, total);
  return false;
}

/// In a piece that has room; false where there are no slots.
bool HostLink::reserve_in(std::uint32_t number, const Reservation& wanted, Transfer& planned) {
  const auto first = free_slots_.take(planned.slots());
  if (!first) return false;
  Staging& staging = staging_[number];
  const std::uint64_t begin = *staging.free.take(planned.bytes());
  planned.first = static_cast<std::uint32_t>(*first);
  planned.memory = staging.piece.memory.data() + begin;
  planned.is_on_host = true;
  own().slot[*first].plan(number, begin, planned.first, at_once(planned));
  for (std::uint32_t reader = 0; reader < planned.readers; ++reader) {
    reader_of_[planned.first_of(reader)] = wanted.readers[reader];
  }
  is_held_[*first].store(true, std::memory_order_relaxed);
  sent_.push_back({planned, wanted.operation, begin, number, wanted.account});
  if (wanted.account) wanted.account->take(planned.bytes());
  return true;
}

/// Shares another piece with room for `bytes`, if the limit and the system allow it: as much as
/// there is already, so that a few have room for many messages, and the latest for long ones.
void HostLink::grow(int device, std::uint64_t bytes) {
  if (until_growing_ > 0) {
    --until_growing_;
    return;
  }
  const std::uint64_t left = limit_ - std::min<std::uint64_t>(limit_, held_);
  if (bytes > left || staging_.size() == HostSegment::most_staging) return;
  const std::uint64_t enough = std::min(rounded(bytes, staging_grain), left);
  const std::uint64_t usual =
      std::max(enough, std::min(std::max<std::uint64_t>(least_staging, held_), left));
  const char* problem = share(device, usual);
  if (problem && usual > enough) problem = share(device, enough);
  if (!problem) return;
  until_growing_ = reservations_between_asking;
  if (staging_.empty()) say_refused(problem);
}

/// Returns why it cannot, or null.
const char* HostLink::share(int device, std::uint64_t bytes) {
  gpu::Gpu* const gpu = gpu::gpu();
  HostMemory memory = HostMemory::create(nonce_, rank_, bytes);
  if (!memory) return HostMemory::none_left;
  if (!gpu->map(device, memory.data(), bytes)) return "memory that they share cannot be pinned";
  if (own_mapped_by_ == gpu::host && gpu->map(device, own_.data(), sizeof(HostSegment))) {
    own_mapped_by_ = device;
    is_mapped_.store(true, std::memory_order_relaxed);
  }
  const auto count = static_cast<std::uint32_t>(staging_.size());
  own().staging[count] = {memory.address(), bytes};
  staging_.push_back({{std::move(memory), device, bytes}, memory::Ranges(bytes)});
  held_ += bytes;
  own().staging_blocks.store(count + 1, std::memory_order_release);
  return nullptr;
}

void HostLink::say_refused(const char* problem) {
  is_refused_.store(true, std::memory_order_relaxed);
  if (is_said_.exchange(true)) return;
  trace::say("messages from GPUs of rank " + std::to_string(rank_) + " go through MPI: " + problem);
}

/// Both sides have done with all of it.
bool HostLink::is_over(const Sent& sent) const {
  if (is_held_[sent.transfer.first].load(std::memory_order_acquire)) return false;
  for (std::uint32_t slot = sent.transfer.slots(); slot-- > 0;) {  // the last is mostly the last
    if (own().slot[sent.transfer.first + slot].acknowledged.load(std::memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

/// Frees the memory of what was acknowledged, of the `count` that were looked at the longest ago.
void HostLink::reclaim(std::size_t count) {
  reclaim_oldest(
      sent_, count, [this](const Sent& sent) { return is_over(sent); },
      [this](const Sent& sent) {
        staging_[sent.staging].free.give(sent.begin, sent.transfer.bytes());
        free_slots_.give(sent.transfer.first, sent.transfer.slots());
        if (sent.account) sent.account->give(sent.transfer.bytes());
      });
}

/// Blocks that are copied in one go are acknowledged together: where others wait for their memory,
/// half of it.
std::uint32_t HostLink::at_once(const Transfer& transfer) {
  return transfer.window > 0 ? std::max(transfer.window / 2, 1u) : transfer.chunks;
}

bool HostLink::is_free(const Transfer& transfer, std::size_t chunk) const {
  if (chunk < transfer.places()) return true;
  constexpr std::uint64_t looks_a_question = 1 << 16;
  thread_local std::uint64_t looks = 0;
  bool asks = false;
  for (std::uint32_t reader = 0; reader < transfer.readers; ++reader) {
    const std::uint32_t first = transfer.first_of(reader);
    const HostSlot& before = own().slot[first + chunk - transfer.places()];
    if (before.acknowledged.load(std::memory_order_acquire) != 0) continue;
    asks = asks || ++looks % looks_a_question == 0;
    if (!asks || lives(reader_of_[first])) return false;
  }
  return true;
}

void HostLink::lay_out(const Transfer& transfer) {
  const HostSlot& first = own().slot[transfer.first];
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    const std::uint32_t chunk = number % transfer.chunks;
    const std::uint64_t at = chunk * transfer.chunk_room;
    HostSlot& slot = own().slot[transfer.first + number];
    if (number > 0) {
      const std::uint64_t offset = chunk % transfer.places() * transfer.chunk_room;
      slot.plan(first.staging, first.offset + offset, transfer.first + chunk, at_once(transfer));
    }
    if (transfer.raw_bytes > 0) {  // the device says no more than that it is there
      slot.report.bytes = std::min(transfer.chunk_room, transfer.raw_bytes - at);
    }
  }
}

Report* HostLink::report(const Transfer& transfer, std::size_t chunk) {
  return &own().slot[transfer.first + chunk].report;
}

void HostLink::publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Report& report = own().slot[transfer.first + chunk].report;
  report.bytes = bytes;
  std::atomic_ref(report.sequence).store(1, std::memory_order_release);
}

bool HostLink::fail(const Transfer& transfer) {
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    HostSlot& slot = own().slot[transfer.first + number];
    Report& report = own().slot[slot.told_by].report;
    if (std::atomic_ref(report.sequence).load(std::memory_order_relaxed) != 0) continue;
    slot.state.store(HostSlot::failed, std::memory_order_release);
  }
  release(transfer);
  return true;
}

void HostLink::release(const Transfer& transfer) {
  is_held_[transfer.first].store(false, std::memory_order_release);
}

/// No reader will do so.
void HostLink::acknowledge_all(const Transfer& transfer) {
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    own().slot[transfer.first + number].acknowledged.store(1, std::memory_order_relaxed);
  }
}

void HostLink::abandon(const Transfer& transfer) {
  std::lock_guard lock(sending_);  // nobody reclaims it before all slots say so
  acknowledge_all(transfer);
  release(transfer);
}

void HostLink::cancel(std::uint64_t operation) {
  std::lock_guard lock(sending_);
  for (const Sent& sent : sent_) {
    if (sent.operation == operation) acknowledge_all(sent.transfer);
  }
}

}  // namespace mpress::link
