// Receive staging: memory of a reader's that it has given one sender, so that what that encodes
// lands near the decoder. The sender keeps account of it by itself.

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::link {

bool PeerLink::reserve_at_reader(const Reservation& wanted, Transfer& transfer) {
  Transfer planned;
  if (opened_by_all(wanted.readers) == 0 || !plan(wanted, limit_on(wanted.device), planned)) {
    return false;
  }
  const std::size_t index = sources_.of(wanted.readers.front()).index;
  PeerSegment& own = own_segment();
  std::lock_guard lock(sending_);
  RemoteStagings& staging = remote_staging_[index];
  if (staging.is_refused) return false;
  const std::uint32_t given = own.receive_staging_blocks[index].load(std::memory_order_acquire);
  while (staging.all.size() < given) {
    const SharedBlock& block = own.receive_staging[index][staging.all.size()];
    staging.all.push_back({block, memory::Ranges(block.bytes), {}});
    staging.bytes += block.bytes;
  }
  const auto reserve_now = [&] { return reserve_remote(wanted, staging, planned); };
  if (!staging.all.empty() && attempt_reserving(staging.full_looks, reserve_now)) {
    transfer = planned;
    return true;
  }
  own.wanted[index].store(staging.bytes + planned.bytes(), std::memory_order_relaxed);
  return false;
}

bool PeerLink::reserve_remote(const Reservation& wanted, RemoteStagings& staging,
                              Transfer& planned) {
  for (std::uint16_t i = 0; i < staging.all.size(); ++i) {
    RemoteStaging& block = staging.all[i];
    if (!block.free.fits(planned.bytes())) continue;
    int device = wanted.device;
    void* const memory = block.opened.open(0, block.block, device, device);
    staging.is_refused = !memory;
    if (!memory) return false;
    map_own(wanted.device);
    const auto number = static_cast<std::uint16_t>(i + 1);
    return reserve_in({&block.free, static_cast<std::byte*>(memory), 0, number}, wanted, planned);
  }
  return false;
}

bool PeerLink::has_given(const Source& source) const {
  const std::uint64_t wanted =
      PeerSegment::of(source).wanted[sources_.own_index()].load(std::memory_order_relaxed);
  return receive_staging_[source.index].answered.load(std::memory_order_relaxed) == wanted &&
         (wanted == 0 || source.has_room.load(std::memory_order_relaxed));
}

void PeerLink::give_receive_staging(Source& source, int device) {
  PeerSegment& segment = PeerSegment::of(source);
  const std::size_t own = sources_.own_index();
  ReceiveStaging& given = receive_staging_[source.index];
  const std::uint64_t wanted = segment.wanted[own].load(std::memory_order_relaxed);
  given.answered.store(wanted, std::memory_order_relaxed);
  const std::size_t count = given.all.size();
  if (wanted <= given.bytes || count == PeerSegment::most_receive_staging) return;
  const std::uint64_t more = wanted - given.bytes;
  const std::uint64_t left = limit_on(device) - std::min(limit_on(device), given_);
  if (more > left || more >= given.too_much) return;
  Piece piece;
  if (share_for(device, more, given.bytes, left, piece, segment.receive_staging[own][count])) {
    given.too_much = more;
    return;
  }
  given.bytes += piece.bytes;
  given_ += piece.bytes;
  given.all.push_back(std::move(piece));
  source.has_room.store(true, std::memory_order_release);
  segment.receive_staging_blocks[own].store(static_cast<std::uint32_t>(count + 1),
                                            std::memory_order_release);
}

const SlotLink::Piece* PeerLink::receive_staging_of(const Source& source, const Slot& slot) const {
  const std::vector<Piece>& given = receive_staging_[source.index].all;
  const std::uint32_t number = slot.receive_staging;
  return number == 0 || number > given.size() ? nullptr : &given[number - 1];
}

}  // namespace mpress::link
