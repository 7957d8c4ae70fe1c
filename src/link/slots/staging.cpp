// Send staging: memory of this process's that readers have opened, and who has room there; what the
// sender says of its slots.

#include <algorithm>
#include <utility>

#include "link/liveness.hpp"
#include "link/slots/slot_link.hpp"

namespace mpress::link {
namespace {

/// Blocks that are read in one go are acknowledged together: where others wait for their memory,
/// half of it.
std::uint16_t at_once(const Transfer& transfer) {
  return static_cast<std::uint16_t>(transfer.window > 0 ? std::max(transfer.window / 2, 1u)
                                                        : transfer.chunks);
}

}  // namespace

void SlotLink::advance() {
  std::lock_guard lock(sending_);
  reclaim(reclaimed_first);
}

std::uint32_t SlotLink::opened_by_all(std::span<const int> readers) const {
  std::uint32_t opened = SlotSegment::unreachable;
  for (const int rank : readers) {
    const std::uint32_t by = opened_by(rank, std::memory_order_acquire);
    if (by == 0 || by == SlotSegment::unreachable) return 0;
    opened = std::min(opened, by);
  }
  return opened;
}

bool SlotLink::plan(const Reservation& wanted, std::uint64_t limit, Transfer& planned) const {
  if (!own_ || wanted.chunks == 0 || wanted.readers.empty() ||
      wanted.chunks > SlotSegment::most_slots / wanted.readers.size()) {
    return false;
  }
  planned.chunks = static_cast<std::uint32_t>(wanted.chunks);
  planned.readers = static_cast<std::uint32_t>(wanted.readers.size());
  planned.chunk_room = rounded(std::max<std::size_t>(wanted.bytes, 1), slot_alignment);
  return planned.chunk_room <= limit / planned.places();
}

bool SlotLink::reserve_staging(const Reservation& wanted, std::uint32_t opened, std::uint64_t limit,
                               Transfer& planned) {
  const std::uint64_t total = planned.bytes();
  const auto serves = [&](const Staging& staging) {
    return (planned.is_on_host || staging.piece.device == wanted.device) &&
           staging.free.fits(total);
  };
  const auto reserve_now = [&] {
    for (std::uint32_t i = 0; i < std::min<std::size_t>(opened - 1, staging_.size()); ++i) {
      Staging& staging = staging_[i];
      if (serves(staging))
        return reserve_in({&staging.free, staging.piece.memory, i}, wanted, planned);
    }
    return false;
  };
  std::lock_guard lock(sending_);
  if (attempt_reserving(full_looks_, reserve_now)) return true;
  if (wanted.account && !wanted.may_exceed && !wanted.account->has_room(total)) return false;
  const bool will_fit = std::any_of(staging_.begin(), staging_.end(), serves);  // once it is opened
  if (!will_fit) grow(wanted.device, total, limit);
  return false;
}

/// In a room that has enough; false where there are no slots, or the operation has used up its
/// share.
bool SlotLink::reserve_in(const Room& room, const Reservation& wanted, Transfer& planned) {
  Account* const account = room.free ? wanted.account : nullptr;
  if (account && !wanted.may_exceed && !account->has_room(planned.bytes())) return false;
  const auto first = free_slots_.take(planned.slots());
  if (!first) return false;
  const std::uint64_t begin = room.free ? *room.free->take(planned.bytes()) : 0;
  planned.first = static_cast<std::uint32_t>(*first);
  planned.memory = room.free ? room.memory + begin : nullptr;
  Slot& slot = own_slot(*first);
  slot.serial.store(++serial_, std::memory_order_relaxed);
  slot.plan(room.staging, room.receive_staging, begin, at_once(planned), planned.first);
  for (std::uint32_t reader = 0; reader < planned.readers && planned.window > 0; ++reader) {
    reader_of_[planned.first_of(reader)] = wanted.readers[reader];
  }
  is_held_[*first].store(true, std::memory_order_relaxed);
  sent_.push_back({planned, wanted.operation, begin, room.free, account});
  if (account) account->take(planned.bytes());
  return true;
}

/// Shares another block with room for `bytes`, if the limit and the device allow it.
void SlotLink::grow(int device, std::uint64_t bytes, std::uint64_t limit) {
  if (until_growing_ > 0) {
    --until_growing_;
    return;
  }
  const auto count = static_cast<std::uint32_t>(staging_.size());
  const std::uint64_t left = limit - std::min<std::uint64_t>(limit, held_);
  if (bytes > left || count == SlotSegment::most_staging) return;
  Piece piece;
  if (const char* const problem =
          share_for(device, bytes, held_, left, piece, own().staging[count])) {
    until_growing_ = reservations_between_asking;
    if (count == 0) refuse(problem);
    return;
  }
  held_ += piece.bytes;
  memory::Ranges free(piece.bytes);
  staging_.push_back({std::move(piece), std::move(free)});
  map_own(device);
  own().staging_blocks.store(count + 1, std::memory_order_release);
}

const char* SlotLink::share_for(int device, std::uint64_t bytes, std::uint64_t held,
                                std::uint64_t left, Piece& made, SharedBlock& block) {
  const std::uint64_t enough = std::min(rounded(with_spare(bytes), staging_grain), left);
  const std::uint64_t usual = std::max(enough, std::min(std::max(least_staging, held), left));
  const char* const problem = share(device, usual, made, block);
  return problem && usual > enough ? share(device, enough, made, block) : problem;
}

/// Both sides have done with all of it.
bool SlotLink::is_over(const Sent& sent) const {
  if (is_held_[sent.transfer.first].load(std::memory_order_acquire)) return false;
  const Slot& first = own_slot(sent.transfer.first);
  const std::uint32_t state = first.state.load(std::memory_order_acquire);
  if (state == Slot::getting || state == Slot::by_mpi) {
    return first.acknowledged.load(std::memory_order_acquire) != 0;
  }
  for (std::uint32_t slot = sent.transfer.slots(); slot-- > 0;) {  // the last is mostly the last
    if (own_slot(sent.transfer.first + slot).acknowledged.load(std::memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

/// Frees the memory of what was acknowledged, of the `count` that were looked at the longest ago.
void SlotLink::reclaim(std::size_t count) {
  reclaim_oldest(
      sent_, count, [this](const Sent& sent) { return is_over(sent); },
      [this](const Sent& sent) {
        if (sent.room) sent.room->give(sent.begin, sent.transfer.bytes());
        free_slots_.give(sent.transfer.first, sent.transfer.slots());
        if (sent.account) sent.account->give(sent.transfer.bytes());
      });
}

bool SlotLink::is_free(const Transfer& transfer, std::size_t chunk) const {
  if (chunk < transfer.places()) return true;
  constexpr std::uint64_t looks_a_question = 1 << 16;
  thread_local std::uint64_t looks = 0;
  bool asks = false;
  for (std::uint32_t reader = 0; reader < transfer.readers; ++reader) {
    const std::uint32_t first = transfer.first_of(reader);
    const Slot& before = own_slot(first + chunk - transfer.places());
    if (before.acknowledged.load(std::memory_order_acquire) != 0) continue;
    asks = asks || ++looks % looks_a_question == 0;
    if (!asks || lives(reader_of_[first])) return false;
  }
  return true;
}

/// An offer needs its first slot only, and the others are many cache lines that another processor
/// had last.
void SlotLink::lay_out(const Transfer& transfer) {
  const Slot& first = own_slot(transfer.first);
  const bool in_runs = transfer.raw_bytes > 0 && !transfer.is_on_host;
  for (std::uint32_t reader = 0; reader < transfer.readers; ++reader) {
    std::uint32_t run = 0;
    for (std::uint32_t chunk = 0; chunk < transfer.chunks; ++chunk) {
      Slot& slot = own_slot(transfer.first_of(reader) + chunk);
      if (!in_runs || chunk == Transfer::run_behind(run)) run = chunk;
      if (&slot != &first) {
        slot.plan(first, chunk % transfer.places() * transfer.chunk_room, transfer.first + run);
      }
      if (transfer.raw_bytes > 0) {  // the device says no more than that it is there
        slot.report.bytes =
            std::min(transfer.chunk_room, transfer.raw_bytes - chunk * transfer.chunk_room);
      }
    }
  }
}

void SlotLink::publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Report& report = own_slot(transfer.first + chunk).report;
  report.bytes = bytes;
  std::atomic_ref(report.sequence).store(1, std::memory_order_release);
}

bool SlotLink::fail(const Transfer& transfer) {
  // Its receiver says `getting` in the first slot, and others may have them all then, but not
  // before the last has failed.
  if (!transfer.memory) lay_out(transfer);
  bool is_taken = false;
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    Slot& slot = own_slot(transfer.first + number);
    std::uint32_t state = slot.state.load(std::memory_order_relaxed);
    if (state == Slot::planned && is_published(own(), slot)) continue;
    while ((state == Slot::planned || state == Slot::offered) &&
           !slot.state.compare_exchange_weak(state, Slot::failed, std::memory_order_release)) {
    }
    is_taken = is_taken || (number == 0 && state == Slot::getting);
  }
  if (!is_taken) release(transfer);
  return !is_taken;
}

/// No reader will do so.
void SlotLink::acknowledge_all(const Transfer& transfer) {
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    own_slot(transfer.first + number).acknowledged.store(1, std::memory_order_relaxed);
  }
}

/// Slots of a transfer that was never laid out still speak of earlier ones.
void SlotLink::abandon(const Transfer& transfer) {
  std::lock_guard lock(sending_);  // nobody reclaims it before all slots say so
  acknowledge_all(transfer);
  release(transfer);
}

void SlotLink::cancel(std::uint64_t operation) {
  std::lock_guard lock(sending_);
  for (const Sent& sent : sent_) {
    if (sent.operation == operation) acknowledge_all(sent.transfer);
  }
}

}  // namespace mpress::link
