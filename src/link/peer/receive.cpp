// The receiving side of the peer link: what others share, and what lies there.

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"
#include "trace/message.hpp"

namespace mpress::link {
namespace {

/// Shorter offers than this take no turns: what is uneven then takes less than waiting does.
constexpr std::size_t least_turn = 4u << 20;

/// An offer that nobody has asked for in this time may be one that the program does not look at.
constexpr std::uint64_t still_asked_ns = 50000;

/// How long a turn is waited for: four times what the message takes on a link of 400 GB/s.
constexpr std::uint64_t longest_wait_ns(std::size_t bytes) { return 20000 + bytes / 100; }

bool is_borrowed(const Parcel& parcel) {
  return parcel.state.load(std::memory_order_acquire) == Parcel::borrowed &&
         parcel.taken.load(std::memory_order_acquire) == 0;
}

}  // namespace

bool PeerLink::Reading::goes_on() const {
  return parcel && is_borrowed(*parcel) && parcel->serial.load(std::memory_order_relaxed) == serial;
}

void PeerLink::meet(int rank, int device) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return;
  Source& source = sources_[static_cast<std::size_t>(index)];
  if (source.is_over.load(std::memory_order_relaxed)) return;
  if (source.has_room.load(std::memory_order_acquire) &&
      source.seen.load(std::memory_order_relaxed) ==
          source.segment->slabs.load(std::memory_order_relaxed) &&
      source.answered.load(std::memory_order_relaxed) ==
          source.segment->wanted[own_index_].load(std::memory_order_relaxed)) {
    return;
  }
  std::lock_guard lock(receiving_);
  if (source.is_over.load(std::memory_order_relaxed)) return;
  open_new(rank, source, device);
  if (!source.is_over.load(std::memory_order_relaxed)) give_landing(source, device);
}

/// Opens the slabs that a rank has shared since. One that cannot be opened ends that: the rank will
/// send by other ways. What is under way in the others still comes.
void PeerLink::open_new(int rank, Source& source, int device) {
  const auto& [number, address] = ranks_[static_cast<std::size_t>(index_of(rank))];
  const char* problem = nullptr;
  if (!source.is_tried) {
    source.is_tried = true;
    source.segment = MappedSegment::open(address, nonce_, number);
    if (!source.segment) problem = "its process cannot be looked at";
  }
  if (source.segment) {
    if (source.home == gpu::host) source.home = device;
    const std::uint32_t slabs = source.segment->slabs.load(std::memory_order_acquire);
    std::uint32_t seen = source.seen.load(std::memory_order_relaxed);
    const auto opens = [&] {
      return open_for(source.slabs, seen, source.segment->slab[seen], source.home, source.home);
    };
    while (seen < slabs && opens()) ++seen;
    if (seen < slabs) problem = "its memory of GPUs cannot be opened";
    source.segment->opened[own_index_].store(problem ? PeerSegment::unreachable : seen + 1,
                                             std::memory_order_release);
    source.seen.store(seen, std::memory_order_release);
    if (seen > 0) source.has_room.store(true, std::memory_order_release);
  }
  if (!problem) return;
  source.is_over.store(true, std::memory_order_relaxed);
  if (is_said_.exchange(true)) return;
  trace::say("messages from rank " + std::to_string(rank) + " to GPUs of rank " +
             std::to_string(own_->rank) + " go through MPI: " + problem);
}

/// Gives a sender memory of `device` that its messages may land in, if it has asked for some.
void PeerLink::give_landing(Source& source, int device) {
  const std::uint64_t wanted = source.segment->wanted[own_index_].load(std::memory_order_relaxed);
  source.answered.store(wanted, std::memory_order_relaxed);
  const std::size_t count = source.landed.size();
  if (wanted <= source.landed_bytes || count == PeerSegment::most_landings) return;
  const std::uint64_t more = wanted - source.landed_bytes;
  const std::uint64_t left = limit_ - landed_;
  if (more > left || more >= source.too_much) return;
  SharedBlock& block = source.segment->landing[own_index_][count];
  std::byte* const memory = share_memory(device, more, source.landed_bytes, left, block);
  if (!memory) source.too_much = more;
  if (!memory) return;
  source.landed.push_back({device, memory, block.bytes});
  source.landed_bytes += block.bytes;
  landed_ += block.bytes;
  source.has_room.store(true, std::memory_order_release);
  source.segment->landings[own_index_].store(static_cast<std::uint32_t>(count + 1),
                                             std::memory_order_release);
}

/// A block as `device` reaches it, or else `home`, which `device` is then set to.
void* PeerLink::open_for(Opened& all, std::uint32_t number, const SharedBlock& block, int& device,
                         int home) {
  if (device == gpu::host) device = home;
  const auto row = static_cast<std::size_t>(device);
  if (row >= all.size()) all.resize(row + 1);
  std::vector<Mapping>& opened = all[row];
  if (opened.size() <= number) opened.resize(number + 1);
  Mapping& mapping = opened[number];
  if (!mapping.is_tried) mapping = {gpu::gpu()->open(device, block.handle), true};
  if (mapping.memory || device == home) return mapping.memory;
  device = home;
  return open_for(all, number, block, device, home);
}

bool PeerLink::knows(int rank, std::uint64_t parcel, std::uint64_t chunks) const {
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const Source& source = sources_[static_cast<std::size_t>(index)];
  return source.has_room.load(std::memory_order_acquire) && chunks <= PeerSegment::parcels &&
         parcel <= PeerSegment::parcels - chunks;
}

const PeerLink::Landed* PeerLink::landed_of(const Source& source, const Parcel& parcel) {
  const std::uint32_t landing = parcel.landing;
  if (landing == 0 || landing > source.landed.size()) return nullptr;
  return &source.landed[landing - 1];
}

int PeerLink::lands_on(int rank, std::uint64_t number) {
  const Source& source = source_of(rank);
  std::lock_guard lock(receiving_);
  const Landed* const landed = landed_of(source, source.segment->parcel[number]);
  return landed ? landed->device : gpu::host;
}

PeerLink::Arrival PeerLink::look(int rank, std::uint64_t number, int device) {
  Source& source = source_of(rank);
  const Parcel& parcel = source.segment->parcel[number];
  auto state = static_cast<Parcel::State>(parcel.state.load(std::memory_order_acquire));
  if (state == Parcel::by_mpi) return {state, nullptr, 0, device, parcel.block};
  if (state == Parcel::planned && is_published(*source.segment.operator->(), parcel)) {
    state = Parcel::there;
  }
  if (state != Parcel::there) return {state, nullptr, 0, device, 0};
  const std::uint64_t bytes = parcel.report.bytes;
  const Arrival unknown{Parcel::failed, nullptr, 0, device, 0};
  // A parcel that is of another message than the header says may be in no memory that is known
  // here.
  const auto lies_in = [&](std::uint64_t room) {
    return parcel.offset <= room && bytes <= room - parcel.offset;
  };
  is_used_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  if (parcel.landing > 0) {
    const Landed* const landed = landed_of(source, parcel);
    if (!landed || !lies_in(landed->bytes)) return unknown;
    return {state, landed->memory + parcel.offset, bytes, landed->device, 0, 0, true};
  }
  if (parcel.slab >= source.seen.load(std::memory_order_acquire)) return unknown;
  const SharedBlock& slab = source.segment->slab[parcel.slab];
  if (!lies_in(slab.bytes)) return unknown;
  const void* const memory = open_for(source.slabs, parcel.slab, slab, device, source.home);
  return {state, static_cast<const std::byte*>(memory) + parcel.offset, bytes, device,
          parcel.block};
}

void PeerLink::take(int rank, std::uint64_t number) {
  const Source& source = source_of(rank);
  source.segment->parcel[number].taken.store(1, std::memory_order_release);
}

void PeerLink::open_block(int rank, std::uint32_t block, int device) {
  Source& source = source_of(rank);
  if (block == 0 || block > source.segment->blocks.load(std::memory_order_acquire)) return;
  const std::uint32_t number = block - 1;
  std::lock_guard lock(receiving_);
  // All that is offered can be taken, whatever device it is for.
  if (!open_for(source.blocks, number, source.segment->block[number], source.home, source.home)) {
    return;
  }
  open_for(source.blocks, number, source.segment->block[number], device, source.home);
  source.segment->opened_blocks[own_index_][number / PeerSegment::word_bits].fetch_or(
      std::uint64_t{1} << number % PeerSegment::word_bits);
}

PeerLink::Arrival PeerLink::borrow(int rank, std::uint64_t number, int device, std::size_t bytes) {
  Source& source = source_of(rank);
  Parcel& parcel = source.segment->parcel[number];
  const std::uint32_t block = parcel.block;
  const std::uint64_t within = parcel.within;
  std::uint32_t offered = Parcel::offered;
  if (!parcel.state.compare_exchange_strong(offered, Parcel::borrowed)) {
    return {Parcel::planned, nullptr, 0, device, 0};
  }
  is_used_.store(true, std::memory_order_relaxed);
  const std::uint32_t serial = parcel.serial.load(std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  // As for parcels that are there: this one may be of another message than the header says.
  const bool is_known = block > 0 && block <= source.segment->blocks.load();
  const SharedBlock* const shared = is_known ? &source.segment->block[block - 1] : nullptr;
  const bool fits = shared && within <= shared->bytes && bytes <= shared->bytes - within;
  const void* const memory =
      fits ? open_for(source.blocks, block - 1, *shared, device, source.home) : nullptr;
  if (!memory) return {Parcel::failed, nullptr, 0, device, 0};
  return {
      Parcel::borrowed, static_cast<const std::byte*>(memory) + within, bytes, device, 0, serial};
}

/// Does no other rank read much from there?
bool PeerLink::is_free(const Source& source) const {
  const std::uint64_t last = source.segment->reader.load();
  const std::uint64_t number = (last & UINT32_MAX) - 1;
  return last == 0 || last >> 32 == own_reader() || number >= PeerSegment::parcels ||
         !is_borrowed(source.segment->parcel[number]);
}

bool PeerLink::is_turn(int rank, std::uint64_t number, std::size_t bytes, std::uint64_t found_ns,
                       std::uint64_t now_ns) {
  if (bytes < least_turn) return true;
  Source& source = source_of(rank);
  Parcel& parcel = source.segment->parcel[number];
  parcel.seen.store(1, std::memory_order_relaxed);
  const auto ongoing = [](const Source& one) {
    return std::count_if(one.readings.begin(), one.readings.end(),
                         [](const Reading& reading) { return reading.goes_on(); });
  };
  std::lock_guard lock(receiving_);
  source.asked_ns = now_ns;
  std::uint64_t last = source.segment->reader.load();
  const std::uint64_t next = own_reader() << 32 | (number + 1);
  if (now_ns - found_ns < longest_wait_ns(bytes)) {
    if (latest_ && latest_ != &source && ongoing(*latest_) > 0) return false;
    const auto busy = ongoing(source);
    if (busy == std::ssize(source.readings) || !is_free(source)) return false;
    // Whoever else is asked for has its turn first, if it had its last one before.
    for (const Source& other : sources_) {
      const bool asks = other.asked_ns > 0 && now_ns < other.asked_ns + still_asked_ns;
      if (&other == &source || !asks) continue;
      if (busy > 0 || (other.turn < source.turn && is_free(other))) return false;
    }
    if (!source.segment->reader.compare_exchange_strong(last, next)) return false;
  } else {
    source.segment->reader.store(next);
  }
  source.asked_ns = 0;
  source.turn = ++turns_;
  Reading& oldest = source.readings[0].goes_on() ? source.readings[1] : source.readings[0];
  oldest = {&parcel, parcel.serial.load(std::memory_order_relaxed)};
  latest_ = &source;
  return true;
}

std::uint32_t* PeerLink::taken_flag(int rank, std::uint64_t number, int device) {
  Source& source = source_of(rank);
  std::lock_guard lock(receiving_);
  if (source.mapped_by == gpu::host && !source.is_unmappable) {
    source.is_unmappable = !gpu::gpu()->map(device, source.segment.data(), sizeof(PeerSegment));
    if (!source.is_unmappable) source.mapped_by = device;
  }
  if (source.is_unmappable) return nullptr;
  return reinterpret_cast<std::uint32_t*>(&source.segment->parcel[number].taken);
}

/// Once the device has told, the sender may have used the parcel for another shipment.
void PeerLink::give_back(int rank, std::uint64_t number, std::uint32_t serial) {
  Source& source = source_of(rank);
  Parcel& parcel = source.segment->parcel[number];
  if (parcel.taken.load(std::memory_order_acquire) != 0) return;
  if (parcel.serial.load(std::memory_order_relaxed) == serial) take(rank, number);
}

bool PeerLink::drop(int rank, std::uint64_t first, std::uint64_t chunks) {
  Source& source = source_of(rank);
  std::uint32_t state = Parcel::offered;
  const bool was_offered =
      source.segment->parcel[first].state.compare_exchange_strong(state, Parcel::borrowed);
  if (was_offered || state == Parcel::by_mpi) chunks = 1;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) take(rank, first + chunk);
  return was_offered || state != Parcel::by_mpi;
}

bool PeerLink::lives(int rank) const {
  const int pid = ranks_[static_cast<std::size_t>(index_of(rank))].segment.pid;
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

}  // namespace mpress::link
