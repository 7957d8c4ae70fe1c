#include "link/peer_link.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>

#include "gpu/loaded_gpu.hpp"
#include "trace/message.hpp"

namespace mpress::link {
namespace {

constexpr std::uint64_t alignment = 256;  ///< of chunks in a slab
constexpr std::uint64_t least_slab = 32u << 20;
constexpr std::uint64_t slab_grain = 2u << 20;  ///< what CUDA gives and maps at least

/// Where device memory ran out, this many messages go by before it is asked for again.
constexpr std::uint64_t patience = 64;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

}  // namespace

SegmentAddress PeerLink::open(const std::array<std::uint8_t, 16>& nonce, int rank, bool wanted) {
  nonce_ = nonce;
  if (wanted) own_ = MappedSegment::create(nonce, rank);
  return own_.address();
}

void PeerLink::meet_host(const std::vector<HostRank>& ranks, std::size_t limit) {
  limit_ = limit;
  if (!own_ || ranks.size() > PeerSegment::most_ranks) {
    own_ = {};
    return;
  }
  ranks_ = ranks;
  sources_ = std::vector<Source>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank < 0) continue;
    const auto rank = static_cast<std::size_t>(ranks[i].rank);
    if (rank >= index_.size()) index_.resize(rank + 1, -1);
    if (ranks[i].rank == own_->rank) {
      own_index_ = i;  // a process cannot open its own memory
    } else if (ranks[i].segment.file >= 0) {
      index_[rank] = static_cast<int>(i);
    }
  }
}

int PeerLink::index_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < index_.size() ? index_[index] : -1;
}

bool PeerLink::may_reach(int rank) const {
  const int index = index_of(rank);
  return index >= 0 && own_ &&
         own_->opened[index].load(std::memory_order_relaxed) != PeerSegment::unreachable;
}

bool PeerLink::reaches(int rank) const {
  return may_reach(rank) && own_->opened[index_of(rank)].load(std::memory_order_relaxed) > 1;
}

bool PeerLink::reserve(int rank, int device, std::size_t chunks, std::size_t bytes,
                       std::uint64_t message, Shipment& shipment) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const std::uint32_t met = own_->opened[index].load(std::memory_order_acquire);
  if (met == 0 || met == PeerSegment::unreachable || chunks > PeerSegment::parcels) return false;
  const std::uint32_t opened = met - 1;
  const std::uint64_t each = rounded(bytes, alignment);
  if (each > limit_ / chunks) return false;
  const std::uint64_t total = each * chunks;
  std::lock_guard lock(sending_);
  constexpr std::size_t some = 8;
  reap(some);
  if (reserve_in(device, opened, chunks, each, message, shipment)) return true;
  reap(sent_.size());
  if (reserve_in(device, opened, chunks, each, message, shipment)) return true;
  const bool will_fit = std::any_of(slabs_.begin(), slabs_.end(), [&](const Slab& slab) {
    return slab.device == device && slab.free.fits(total);  // once it is opened
  });
  if (!will_fit) grow(device, total);
  return false;
}

/// In one of the first `opened` slabs, if there is room.
bool PeerLink::reserve_in(int device, std::uint32_t opened, std::size_t chunks, std::uint64_t each,
                          std::uint64_t message, Shipment& shipment) {
  const std::uint64_t total = each * chunks;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(opened, slabs_.size()); ++i) {
    if (slabs_[i].device != device || !slabs_[i].free.fits(total)) continue;
    const auto first = parcels_.take(chunks);
    if (!first) return false;
    const std::uint64_t begin = *slabs_[i].free.take(total);
    shipment = {static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(chunks)};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      Parcel& parcel = own_->parcel[*first + chunk];
      parcel.slab = i;
      parcel.offset = begin + chunk * each;
      parcel.bytes = 0;
      parcel.taken.store(0, std::memory_order_relaxed);
      parcel.state.store(Parcel::planned, std::memory_order_relaxed);
    }
    sent_.push_back({shipment, message, begin, total, i});
    return true;
  }
  return false;
}

/// Shares another slab with room for `bytes`, if the limit and the device allow it.
void PeerLink::grow(int device, std::uint64_t bytes) {
  if (patience_ > 0) {
    --patience_;
    return;
  }
  const std::uint64_t left = limit_ - held_;
  const auto count = static_cast<std::uint32_t>(slabs_.size());
  if (bytes > left || count == PeerSegment::most_slabs) return;
  // A message of this size may need more when it is encoded. As much as all slabs before, so that a
  // few have room for many messages, and the latest for long ones.
  const std::uint64_t enough = std::min(rounded(bytes + bytes / 16, slab_grain), left);
  const std::uint64_t usual = std::min(std::max(least_slab, held_), left);
  gpu::Gpu* const gpu = gpu::gpu();
  bytes = std::max(enough, usual);
  void* memory = gpu->allocate(gpu::Place::device, device, bytes);
  if (!memory && bytes > enough) {
    bytes = enough;
    memory = gpu->allocate(gpu::Place::device, device, bytes);
  }
  patience_ = patience;
  if (!memory) return;
  SharedSlab& slab = own_->slab[count];
  slab.device = device;
  slab.bytes = bytes;
  if (!gpu->share(device, memory, slab.handle)) {
    gpu->release(gpu::Place::device, device, memory);
    patience_ = std::numeric_limits<std::uint64_t>::max();  // it never will
    return;
  }
  patience_ = 0;
  slabs_.push_back({device, static_cast<std::byte*>(memory), memory::Ranges(bytes)});
  held_ += bytes;
  own_->slabs.store(count + 1, std::memory_order_release);
}

std::byte* PeerLink::place(const Shipment& shipment, std::size_t chunk) {
  const Parcel& parcel = own_->parcel[shipment.first + chunk];
  std::lock_guard lock(sending_);
  return slabs_[parcel.slab].memory + parcel.offset;
}

void PeerLink::send(const Shipment& shipment, std::size_t chunk, std::size_t bytes) {
  Parcel& parcel = own_->parcel[shipment.first + chunk];
  parcel.bytes = bytes;
  parcel.state.store(Parcel::there, std::memory_order_release);
}

void PeerLink::fail(const Shipment& shipment) {
  for (std::uint32_t chunk = 0; chunk < shipment.chunks; ++chunk) {
    Parcel& parcel = own_->parcel[shipment.first + chunk];
    std::uint32_t planned = Parcel::planned;
    parcel.state.compare_exchange_strong(planned, Parcel::failed, std::memory_order_release);
  }
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

/// Both sides have done with all of it.
bool PeerLink::is_over(const Sent& sent) const {
  for (std::uint32_t chunk = sent.shipment.chunks; chunk-- > 0;) {  // the last is mostly the last
    const Parcel& parcel = own_->parcel[sent.shipment.first + chunk];
    if (parcel.taken.load(std::memory_order_acquire) == 0 ||
        parcel.state.load(std::memory_order_relaxed) == Parcel::planned) {
      return false;
    }
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
    slabs_[sent.slab].free.give(sent.begin, sent.bytes);
    parcels_.give(sent.shipment.first, sent.shipment.chunks);
  }
}

void PeerLink::meet(int rank, int device) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return;
  Source& source = sources_[static_cast<std::size_t>(index)];
  if (source.is_over.load(std::memory_order_relaxed)) return;
  const std::uint32_t seen = source.seen.load(std::memory_order_acquire);
  if (seen > 0 && seen == source.segment->slabs.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(receiving_);
  if (!source.is_over.load(std::memory_order_relaxed)) open_new(rank, source, device);
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
    while (seen < slabs && open_for(source, seen, source.home)) ++seen;
    if (seen < slabs) problem = "its memory of GPUs cannot be opened";
    source.segment->opened[own_index_].store(problem ? PeerSegment::unreachable : seen + 1,
                                             std::memory_order_release);
    source.seen.store(seen, std::memory_order_release);
  }
  if (!problem) return;
  source.is_over.store(true, std::memory_order_relaxed);
  if (is_said_.exchange(true)) return;
  trace::say("messages from rank " + std::to_string(rank) + " to GPUs of rank " +
             std::to_string(own_->rank) + " go through MPI: " + problem);
}

void* PeerLink::open_for(Source& source, std::uint32_t slab, int device) {
  const auto row = static_cast<std::size_t>(device);
  if (row >= source.opened.size()) source.opened.resize(row + 1);
  std::vector<void*>& opened = source.opened[row];
  if (opened.size() <= slab) opened.resize(slab + 1);
  if (!opened[slab]) opened[slab] = gpu::gpu()->open(device, source.segment->slab[slab].handle);
  return opened[slab];
}

bool PeerLink::knows(int rank, std::uint64_t parcel, std::uint64_t chunks) const {
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const std::uint32_t seen =
      sources_[static_cast<std::size_t>(index)].seen.load(std::memory_order_acquire);
  return seen > 0 && chunks <= PeerSegment::parcels && parcel <= PeerSegment::parcels - chunks;
}

PeerLink::Arrival PeerLink::look(int rank, std::uint64_t number, int device) {
  Source& source = sources_[static_cast<std::size_t>(index_of(rank))];
  const Parcel& parcel = source.segment->parcel[number];
  const auto state = static_cast<Parcel::State>(parcel.state.load(std::memory_order_acquire));
  if (state != Parcel::there) return {state, nullptr, 0, device};
  // A parcel that is of another message than the header says may be in no slab that is known here.
  if (parcel.slab >= source.seen.load(std::memory_order_acquire)) {
    return {Parcel::failed, nullptr, 0, device};
  }
  const SharedSlab& slab = source.segment->slab[parcel.slab];
  if (parcel.offset > slab.bytes || parcel.bytes > slab.bytes - parcel.offset) {
    return {Parcel::failed, nullptr, 0, device};
  }
  is_used_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  void* memory = device == gpu::host ? nullptr : open_for(source, parcel.slab, device);
  if (!memory) {
    device = source.home;
    memory = open_for(source, parcel.slab, device);
  }
  return {state, static_cast<const std::byte*>(memory) + parcel.offset, parcel.bytes, device};
}

void PeerLink::take(int rank, std::uint64_t number) {
  const Source& source = sources_[static_cast<std::size_t>(index_of(rank))];
  source.segment->parcel[number].taken.store(1, std::memory_order_release);
}

bool PeerLink::lives(int rank) const {
  const int pid = ranks_[static_cast<std::size_t>(index_of(rank))].segment.pid;
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

void PeerLink::close() {
  std::lock_guard lock(receiving_);
  for (Source& source : sources_) {
    for (std::size_t device = 0; device < source.opened.size(); ++device) {
      for (void* memory : source.opened[device]) {
        if (memory) gpu::gpu()->close(static_cast<int>(device), memory);
      }
    }
    source.opened.clear();
    source.seen.store(0, std::memory_order_relaxed);
    source.is_over.store(true, std::memory_order_relaxed);
  }
}

void PeerLink::release() {
  std::lock_guard lock(sending_);
  for (const Slab& slab : slabs_) {
    gpu::gpu()->release(gpu::Place::device, slab.device, slab.memory);
  }
  slabs_.clear();
  sent_.clear();
  index_.clear();
}

}  // namespace mpress::link
