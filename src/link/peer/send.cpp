// The sending side of the peer link: memory for chunks, and offers.

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::link {
namespace {

constexpr std::uint64_t alignment = 256;  ///< of chunks in a slab
constexpr std::uint64_t least_slab = 32u << 20;
constexpr std::uint64_t slab_grain = 2u << 20;  ///< what CUDA gives and maps at least

/// Where device memory ran out, this many messages go by before it is asked for again.
constexpr std::uint64_t patience = 64;

/// Of a rank that does not take what it is offered, at most so many messages go by until the next
/// offer.
constexpr std::uint32_t longest_skip = 63;

/// Blocks of the program's may be shared up to so many times the limit for slabs: what they cost is
/// memory that the program frees and others still have open.
constexpr std::size_t lent_limits = 4;

/// Blocks of the program's that are not shared and yet remembered.
constexpr std::size_t most_known_blocks = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

/// A parcel for a chunk that will lie there.
void plan(Parcel& parcel, std::uint32_t slab, std::uint32_t landing, std::uint64_t offset,
          std::uint32_t told_by) {
  parcel.slab = slab;
  parcel.landing = landing;
  parcel.offset = offset;
  parcel.report = {};
  parcel.block = 0;
  parcel.told_by = told_by;
  parcel.taken.store(0, std::memory_order_release);  // behind the serial
  parcel.state.store(Parcel::planned, std::memory_order_relaxed);
}

/// What was sent the longest ago is looked at first, and so many of that before any message.
constexpr std::size_t some = 8;

}  // namespace

/// Bytes from one chunk to the next; 0 where there can be no room for the shipment. `opened`: the
/// slabs that the rank has opened.
std::uint64_t PeerLink::room_of(int rank, std::size_t chunks, std::size_t bytes,
                                std::uint32_t& opened) const {
  const int index = index_of(rank);
  if (index < 0 || !own_ || chunks > PeerSegment::parcels) return 0;
  const std::uint32_t met = own_->opened[index].load(std::memory_order_acquire);
  if (met == 0 || met == PeerSegment::unreachable) return 0;
  opened = met - 1;
  const std::uint64_t each = rounded(std::max<std::size_t>(bytes, 1), alignment);
  return each <= limit_ / chunks ? each : 0;
}

bool PeerLink::reserve(int rank, int device, std::size_t chunks, std::size_t bytes,
                       std::uint64_t message, Shipment& shipment) {
  std::uint32_t opened = 0;
  const std::uint64_t each = room_of(rank, chunks, bytes, opened);
  if (each == 0) {
    // Too long for any slab, but one has to be opened before messages of any length are offered.
    if (!has_met(rank) || reaches(rank)) return false;
    std::lock_guard lock(sending_);
    if (slabs_.empty()) grow(device, alignment);
    return false;
  }
  Shipment planned{0, static_cast<std::uint32_t>(chunks), each};
  std::lock_guard lock(sending_);
  for (const std::size_t looked_at : {some, sent_.size()}) {
    reap(looked_at);
    if (!reserve_slab(device, opened, message, planned)) continue;
    shipment = planned;
    return true;
  }
  const std::uint64_t total = planned.bytes();
  const bool will_fit = std::any_of(slabs_.begin(), slabs_.end(), [&](const Slab& slab) {
    return slab.device == device && slab.free.fits(total);  // once it is opened
  });
  if (!will_fit) grow(device, total);
  return false;
}

bool PeerLink::reserve_landing(int rank, int device, std::size_t chunks, std::size_t bytes,
                               std::uint64_t message, Shipment& shipment) {
  std::uint32_t opened = 0;
  const std::uint64_t each = room_of(rank, chunks, bytes, opened);
  if (each == 0) return false;
  Shipment planned{0, static_cast<std::uint32_t>(chunks), each};
  const auto index = static_cast<std::size_t>(index_of(rank));
  std::lock_guard lock(sending_);
  Landings& landings = landings_[index];
  if (landings.is_refused) return false;
  const std::uint32_t given = own_->landings[index].load(std::memory_order_acquire);
  while (landings.all.size() < given) {
    const SharedBlock& block = own_->landing[index][landings.all.size()];
    landings.all.push_back({block, memory::Ranges(block.bytes), {}});
    landings.bytes += block.bytes;
  }
  for (const std::size_t looked_at : {some, sent_.size()}) {
    if (landings.all.empty()) break;
    reap(looked_at);
    if (!reserve_landed(landings, device, message, planned)) continue;
    shipment = planned;
    return true;
  }
  own_->wanted[index].store(landings.bytes + planned.bytes(), std::memory_order_relaxed);
  return false;
}

/// In one of the first `opened` slabs, if there is room.
bool PeerLink::reserve_slab(int device, std::uint32_t opened, std::uint64_t message,
                            Shipment& planned) {
  for (std::uint32_t i = 0; i < std::min<std::size_t>(opened, slabs_.size()); ++i) {
    if (slabs_[i].device != device || !slabs_[i].free.fits(planned.bytes())) continue;
    return reserve_in(&slabs_[i].free, i, 0, slabs_[i].memory, message, planned);
  }
  return false;
}

/// In memory of the receiver's, if there is room.
bool PeerLink::reserve_landed(Landings& landings, int device, std::uint64_t message,
                              Shipment& planned) {
  for (std::uint32_t i = 0; i < landings.all.size(); ++i) {
    Landing& landing = landings.all[i];
    if (!landing.free.fits(planned.bytes())) continue;
    const auto row = static_cast<std::size_t>(device);
    if (row >= landing.mappings.size()) landing.mappings.resize(row + 1);
    Mapping& mapping = landing.mappings[row];
    if (!mapping.is_tried) mapping = {gpu::gpu()->open(device, landing.block.handle), true};
    landings.is_refused = !mapping.memory;
    if (!mapping.memory) return false;
    map_own(device);
    return reserve_in(&landing.free, 0, i + 1, mapping.memory, message, planned);
  }
  return false;
}

/// In `room`, which has enough, or without any; false where there are no parcels.
bool PeerLink::reserve_in(memory::Ranges* room, std::uint32_t slab, std::uint32_t landing,
                          void* memory, std::uint64_t message, Shipment& planned) {
  const auto first = parcels_.take(planned.chunks);
  if (!first) return false;
  const std::uint64_t begin = room ? *room->take(planned.bytes()) : 0;
  planned.first = static_cast<std::uint32_t>(*first);
  planned.memory = room ? static_cast<std::byte*>(memory) + begin : nullptr;
  Parcel& parcel = own_->parcel[*first];
  parcel.serial.store(++serial_, std::memory_order_relaxed);
  plan(parcel, slab, landing, begin, planned.first);
  is_held_[*first].store(true, std::memory_order_relaxed);
  sent_.push_back({planned, message, begin, room});
  return true;
}

bool PeerLink::reserve_offer(int rank, std::size_t chunks, std::uint64_t message,
                             Shipment& shipment) {
  if (!reaches(rank) || chunks > PeerSegment::parcels) return false;
  Shipment planned{0, static_cast<std::uint32_t>(chunks)};
  std::lock_guard lock(sending_);
  reap(sent_.size());
  if (!reserve_in(nullptr, 0, 0, nullptr, message, planned)) return false;
  shipment = planned;
  return true;
}

/// An offer needs its first parcel only, and the others are many cache lines that another processor
/// had last.
void PeerLink::lay_out(const Shipment& shipment) {
  const Parcel& first = own_->parcel[shipment.first];
  const bool in_runs = shipment.raw_bytes > 0;
  std::uint32_t run = 0;
  for (std::uint32_t chunk = 0; chunk < shipment.chunks; ++chunk) {
    Parcel& parcel = own_->parcel[shipment.first + chunk];
    if (!in_runs || chunk == Shipment::run_behind(run)) run = chunk;
    if (chunk > 0) {
      plan(parcel, first.slab, first.landing, first.offset + chunk * shipment.chunk_room,
           shipment.first + run);
    }
    if (in_runs) {
      parcel.report.bytes =
          std::min(shipment.chunk_room, shipment.raw_bytes - chunk * shipment.chunk_room);
    }
  }
}

Report* PeerLink::report(const Shipment& shipment, std::size_t chunk) {
  return &own_->parcel[shipment.first + chunk].report;
}

/// Lets devices write to the own segment. Pinning it takes some hundred microseconds, once, where
/// memory for messages is being made, too.
void PeerLink::map_own(int device) {
  if (std::exchange(is_map_tried_, true)) return;
  if (!gpu::gpu()->map(device, own_.data(), sizeof(PeerSegment))) return;
  own_mapped_by_ = device;
  is_mapped_.store(true, std::memory_order_relaxed);
}

/// Shares another slab with room for `bytes`, if the limit and the device allow it.
void PeerLink::grow(int device, std::uint64_t bytes) {
  if (patience_ > 0) {
    --patience_;
    return;
  }
  const auto count = static_cast<std::uint32_t>(slabs_.size());
  if (bytes > limit_ - held_ || count == PeerSegment::most_slabs) return;
  SharedBlock& slab = own_->slab[count];
  std::byte* const memory = share_memory(device, bytes, held_, limit_ - held_, slab);
  patience_ = memory ? 0 : patience;
  if (!memory) return;
  slabs_.push_back({device, memory, memory::Ranges(slab.bytes)});
  held_ += slab.bytes;
  map_own(device);
  own_->slabs.store(count + 1, std::memory_order_release);
}

/// New memory of `device` for a message of `bytes` bytes, where `held` bytes serve the same purpose
/// already and `left` bytes may be taken; null where the device has none or cannot share it. A
/// message of this size may need more when it is encoded. As much as there is already, so that a
/// few blocks have room for many messages, and the latest for long ones.
std::byte* PeerLink::share_memory(int device, std::uint64_t bytes, std::uint64_t held,
                                  std::uint64_t left, SharedBlock& block) {
  if (cannot_share_.load(std::memory_order_relaxed)) return nullptr;
  const std::uint64_t enough = std::min(rounded(bytes + bytes / 16, slab_grain), left);
  const std::uint64_t usual = std::max(enough, std::min(std::max(least_slab, held), left));
  gpu::Gpu* const gpu = gpu::gpu();
  block.device = device;
  block.bytes = usual;
  void* memory = gpu->allocate(gpu::Place::device, device, usual);
  if (!memory && usual > enough) {
    block.bytes = enough;
    memory = gpu->allocate(gpu::Place::device, device, enough);
  }
  if (memory && !gpu->share(device, memory, block.handle)) {
    gpu->release(gpu::Place::device, device, memory);
    memory = nullptr;
    cannot_share_.store(true, std::memory_order_relaxed);
  }
  return static_cast<std::byte*>(memory);
}

void PeerLink::publish(const Shipment& shipment, std::size_t chunk, std::size_t bytes) {
  Report& report = own_->parcel[shipment.first + chunk].report;
  report.bytes = bytes;
  std::atomic_ref(report.sequence).store(1, std::memory_order_release);
}

bool PeerLink::fail(const Shipment& shipment) {
  // Its receiver says `taken` in all parcels, and others may have them then, but not before the
  // last has failed.
  if (!shipment.memory) lay_out(shipment);
  bool is_borrowed = false;
  for (std::uint32_t chunk = 0; chunk < shipment.chunks; ++chunk) {
    Parcel& parcel = own_->parcel[shipment.first + chunk];
    std::uint32_t state = parcel.state.load(std::memory_order_relaxed);
    if (state == Parcel::planned && is_published(*own_.operator->(), parcel)) continue;
    while ((state == Parcel::planned || state == Parcel::offered) &&
           !parcel.state.compare_exchange_weak(state, Parcel::failed, std::memory_order_release)) {
    }
    is_borrowed = is_borrowed || (chunk == 0 && state == Parcel::borrowed);
  }
  if (!is_borrowed) release(shipment);
  return !is_borrowed;
}

void PeerLink::release(const Shipment& shipment) {
  is_held_[shipment.first].store(false, std::memory_order_release);
}

void PeerLink::cancel(std::uint64_t message) {
  std::lock_guard lock(sending_);
  for (const Sent& sent : sent_) {
    if (sent.message != message) continue;
    for (std::uint32_t chunk = 0; chunk < sent.shipment.chunks; ++chunk) {
      own_->parcel[sent.shipment.first + chunk].taken.store(1, std::memory_order_relaxed);
    }
  }
}

bool PeerLink::offer(const Shipment& shipment, int rank, int device, const void* data,
                     std::size_t bytes) {
  Parcel& parcel = own_->parcel[shipment.first];
  std::lock_guard lock(sending_);
  Borrower& borrower = borrower_of(rank);
  if (borrower.skip > 0) {
    --borrower.skip;
    return false;
  }
  if (!find_lent(device, data, bytes, parcel)) return false;
  const std::uint32_t number = parcel.block - 1;
  const std::uint64_t opened =
      own_->opened_blocks[index_of(rank)][number / PeerSegment::word_bits].load();
  if ((opened >> number % PeerSegment::word_bits & 1) == 0) return false;
  parcel.seen.store(0, std::memory_order_relaxed);
  parcel.state.store(Parcel::offered, std::memory_order_release);
  return true;
}

bool PeerLink::is_seen(const Shipment& shipment) const {
  return own_->parcel[shipment.first].seen.load(std::memory_order_relaxed) != 0;
}

/// The block of the program's that the data lies in, for others to open. What they have open they
/// close at the end only, as that waits for the device, and so its memory does not come free before
/// either. Hence the limit, and no block is shared for its first message, as opening takes longer
/// than some copies.
bool PeerLink::find_lent(int device, const void* data, std::size_t bytes, Parcel& parcel) {
  gpu::Gpu* const gpu = gpu::gpu();
  gpu::Block block;
  if (!gpu->find_block(device, data, block)) return false;
  const auto within = static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - block.base);
  if (within > block.bytes || bytes > block.bytes - within) return false;
  if (lent_.size() >= most_known_blocks) {
    std::erase_if(lent_, [](const auto& known) { return !known.second.is_shared; });
  }
  const auto [entry, is_new] = lent_.try_emplace(block.id);
  Lent& lent = entry->second;
  if (is_new || lent.is_refused) return false;
  if (!lent.is_shared) {
    const std::uint32_t number = own_->blocks.load(std::memory_order_relaxed);
    const std::size_t kept = rounded(block.bytes, slab_grain);
    SharedBlock& shared = own_->block[std::min<std::size_t>(number, PeerSegment::most_blocks - 1)];
    lent.is_refused = number == PeerSegment::most_blocks ||
                      kept > lent_limits * limit_ - lent_bytes_ ||
                      !gpu->share(device, block.base, shared.handle);
    if (lent.is_refused) return false;
    shared.device = device;
    shared.bytes = block.bytes;
    lent.is_shared = true;
    lent.number = number;
    lent_bytes_ += kept;
    own_->blocks.store(number + 1, std::memory_order_release);
  }
  parcel.block = lent.number + 1;
  parcel.within = within;
  return true;
}

PeerLink::Offer PeerLink::look_at_offer(const Shipment& shipment, int rank) {
  Parcel& parcel = own_->parcel[shipment.first];
  if (parcel.state.load(std::memory_order_acquire) == Parcel::offered) return Offer::open;
  if (parcel.taken.load(std::memory_order_acquire) == 0) return Offer::borrowed;
  std::lock_guard lock(sending_);
  borrower_of(rank) = {};
  release(shipment);
  return Offer::returned;
}

bool PeerLink::withdraw(const Shipment& shipment, int rank) {
  const bool has_memory = shipment.memory != nullptr;
  // A receiver may use all parcels from the moment on that this is no offer.
  if (has_memory) lay_out(shipment);
  std::uint32_t offered = Parcel::offered;
  const Parcel::State instead = has_memory ? Parcel::planned : Parcel::by_mpi;
  if (!own_->parcel[shipment.first].state.compare_exchange_strong(offered, instead)) return false;
  if (!is_seen(shipment)) note_miss(rank);
  return true;
}

bool PeerLink::introduce(const Shipment& shipment) {
  Parcel& parcel = own_->parcel[shipment.first];
  if (parcel.block == 0) return false;
  parcel.state.store(Parcel::by_mpi, std::memory_order_release);
  return true;
}

void PeerLink::note_miss(int rank) {
  std::lock_guard lock(sending_);
  Borrower& borrower = borrower_of(rank);
  borrower.skip = std::min((1u << std::min(borrower.misses, 31u)) - 1, longest_skip);
  ++borrower.misses;
}

/// Both sides have done with all of it.
bool PeerLink::is_over(const Sent& sent) const {
  if (is_held_[sent.shipment.first].load(std::memory_order_acquire)) return false;
  const Parcel& first = own_->parcel[sent.shipment.first];
  const std::uint32_t state = first.state.load(std::memory_order_acquire);
  if (state == Parcel::borrowed || state == Parcel::by_mpi) {
    return first.taken.load(std::memory_order_acquire) != 0;
  }
  for (std::uint32_t chunk = sent.shipment.chunks; chunk-- > 0;) {  // the last is mostly the last
    const Parcel& parcel = own_->parcel[sent.shipment.first + chunk];
    if (parcel.taken.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

/// Frees the memory of what was taken, of the `count` that were looked at the longest ago: a
/// receiver who is late costs a send no more, and holds up nobody else's memory.
void PeerLink::reap(std::size_t count) {
  for (count = std::min(count, sent_.size()); count > 0; --count) {
    const Sent sent = sent_.front();
    sent_.pop_front();
    if (!is_over(sent)) {
      sent_.push_back(sent);
      continue;
    }
    if (sent.room) sent.room->give(sent.begin, sent.shipment.bytes());
    parcels_.give(sent.shipment.first, sent.shipment.chunks);
  }
}

}  // namespace mpress::link
