// The ranks of this host, and what each shares, as this process reads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/host_memory.hpp"
#include "link/link.hpp"
#include "link/slots/slot.hpp"

namespace mpress::link {

struct Source {
  int rank;  ///< in MPI_COMM_WORLD
  ProcessId process;
  HostMemory::Address address;  ///< of its segment
  std::size_t index;            ///< among the ranks of this host
  HostMemory segment;
  int first_device = gpu::host;        ///< the device that first got a block from it
  std::atomic<bool> is_known{false};   ///< what it shares was looked at, and it knows
  std::atomic<bool> has_room{false};   ///< its blocks may lie in staging memory, either side's
  std::atomic<std::uint32_t> seen{0};  ///< blocks of its send staging that are opened
  std::atomic<bool> is_over{false};    ///< no more of them can be

  SlotSegment& slots() const { return *reinterpret_cast<SlotSegment*>(segment.data()); }
  Slot& slot(std::uint64_t number) const { return slots().slot[number]; }
};

class Sources {
 public:
  /// `own` is this process's rank: what it sends itself goes otherwise.
  void open(const std::vector<Neighbour>& ranks, int own);

  /// Among the ranks of this host; negative: elsewhere, without a segment, or this process's own.
  int index_of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return rank >= 0 && index < index_.size() ? index_[index] : -1;
  }
  std::size_t own_index() const { return own_index_; }
  std::size_t size() const { return all_.size(); }

  /// Of a rank that index_of() finds.
  Source& of(int rank) { return all_[static_cast<std::size_t>(index_of(rank))]; }
  const Source& of(int rank) const { return all_[static_cast<std::size_t>(index_of(rank))]; }

  std::vector<Source>& all() { return all_; }

  /// From now on index_of() finds none.
  void forget() { index_.clear(); }

 private:
  std::vector<Source> all_;
  std::vector<int> index_;  ///< in all_, by rank in MPI_COMM_WORLD
  std::size_t own_index_ = 0;
};

}  // namespace mpress::link
