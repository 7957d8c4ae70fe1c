// What is around adding units: where they are in the payloads, and what becomes of a segment.
#pragma once

#include "codec/szp/cuda_payload.cuh"

namespace mpress::codec::cuda {

/// Payloads to be added, as kernels see them.
struct SumSegment {
  Source from[most_summands];
  unsigned char* out;
  std::uint64_t count;  ///< elements
  Result* result;
  unsigned char* decoded;  ///< or null
  std::uint32_t summands;
  std::uint32_t elements;  ///< a bit for each summand that is none of payloads
};

/// For batches.
inline SumSegment segment_of(const AddSegment& s) {
  SumSegment sum{{},
                 static_cast<unsigned char*>(s.payload),
                 s.count,
                 s.result,
                 static_cast<unsigned char*>(s.decoded),
                 static_cast<std::uint32_t>(s.summands.size()),
                 0};
  for (std::size_t k = 0; k < s.summands.size(); ++k) {
    const Summand& one = s.summands[k];
    const std::size_t bytes = one.is_elements ? 0 : one.bytes;
    sum.from[k] = {static_cast<const unsigned char*>(one.payload), bytes, one.encoded};
    sum.elements |= one.is_elements ? 1u << k : 0;
  }
  return sum;
}

}  // namespace mpress::codec::cuda

namespace mpress::codec::szp::cuda {

using codec::cuda::SumSegment;
using codec::cuda::warp_sum;

// The host looks at one payload after the other and stops at the first error. Here every task
// raises what it finds, with its place in that order, and the first one is reported.

/// Summand k is stage k; behind them all, the sum.
inline constexpr std::uint32_t sum_stage = most_summands;

struct Finding {
  std::uint32_t stage;
  std::uint32_t unit;  ///< the number of units: behind them all
  Status status;
};

/// What is known of a segment's summands while its tasks run. Zero between calls.
struct alignas(16) SumState {
  unsigned long long first;                ///< the complement of the first Finding; 0: none
  std::uint32_t checksums[most_summands];  ///< of the summands
};

__device__ inline void raise(SumState& state, const Finding& f) {
  const unsigned long long order = static_cast<unsigned long long>(f.stage) << 48 |
                                   static_cast<unsigned long long>(f.unit) << 8 |
                                   static_cast<unsigned long long>(f.status);
  atomicMax(&state.first, ~order);
}

/// Of the stage; ok where the first finding is of another one.
__device__ inline Status found(const SumState& state, std::uint32_t stage) {
  const unsigned long long first = *const_cast<const volatile unsigned long long*>(&state.first);
  if (first == 0 || ~first >> 48 != stage) return Status::ok;
  return static_cast<Status>(~first & 255);
}

/// Units whose directory entries a task adds up at most. The first task of each such chapter but
/// the first tells the others where it begins in all payloads; slots as in look_back().
inline constexpr unsigned chapter_units = 1024;

struct Chapter {
  std::uint64_t begins[most_summands];
};

/// A workspace of add(): that of the codecs, with these before the slots.
struct SumWorkspace : Workspace {
  SumState* sums;     ///< one a segment of this launch
  Chapter* chapters;  ///< one for chapter_units tasks; zero between calls
};

inline SumWorkspace sum_workspace_of(void* memory, std::size_t segments, std::size_t tasks) {
  SumWorkspace work{codec::cuda::workspace_of(memory, segments), nullptr, nullptr};
  work.sums = reinterpret_cast<SumState*>(work.slots);
  work.chapters = reinterpret_cast<Chapter*>(work.sums + segments);
  work.slots = reinterpret_cast<std::uint64_t*>(work.chapters + tasks / chapter_units + 1);
  return work;
}

/// What add() needs of a workspace on top of what all do.
inline std::size_t sum_workspace_bytes(std::size_t tasks, std::size_t segments) {
  return std::min<std::size_t>(segments, codec::cuda::max_batch) * sizeof(SumState) +
         (tasks / chapter_units + 1) * sizeof(Chapter);
}

/// What elements among the summands count as.
template <class T>
struct Elements {
  Quantizer<T> z;  ///< of step 0 where there is none
  double bound;
  Mode mode;
};

/// What of a unit's words the payload has, or of elements those of the unit.
struct UnitPlace {
  std::uint64_t at;  ///< in words of the payload
  unsigned words;    ///< 0 as well where they are not there
  bool raw;
};

/// A segment's summands, as the threads of a block share them.
template <class T>
struct SummandsShared {
  Payload payloads[most_summands];
  Status opened[most_summands];
  UnitPlace places[most_summands];  ///< of the task's unit
  std::uint32_t checksums[Shape<T>::warps][most_summands];
};

/// Looks at all headers. Returns how many are sound before the first that is not: those behind it
/// do not matter any more. Called by all threads of a block.
template <class T>
__device__ __forceinline__ unsigned open_summands(SummandsShared<T>& s, const SumSegment& segment,
                                                  const Elements<T>& as) {
  if (threadIdx.x < segment.summands) {
    const unsigned k = threadIdx.x;
    if ((segment.elements >> k & 1) != 0) {
      const Header header{format_version,
                          Traits<T>::type,
                          as.mode,
                          0,
                          0,
                          segment.count,
                          static_cast<double>(as.z.step),
                          as.bound};
      s.payloads[k] = {segment.from[k].data, segment.count * sizeof(T), header};
      s.opened[k] = as.z.step > 0 ? Status::ok : Status::inexact;
    } else {
      s.opened[k] = open_payload<T>(segment.from[k], segment.count, s.payloads[k]);
    }
  }
  __syncthreads();
  unsigned open = 0;
  while (open < segment.summands && s.opened[open] == Status::ok) ++open;
  return open;
}

/// Finds the unit in the first `open` payloads, and raises what is wrong with directories.
/// `elements`: a bit for each that is none. `chapter`: that of the segment's first unit. Called by
/// all threads of a block, once; a warp takes every payload that is its turn.
template <class T>
__device__ __forceinline__ void locate_units(SummandsShared<T>& s, unsigned open,
                                             std::uint32_t elements, std::uint32_t unit,
                                             std::uint32_t units, unsigned count, Chapter* chapter,
                                             SumState& state) {
  using S = Shape<T>;
  const std::uint32_t before = unit == 0 ? 0 : (unit - 1) / chapter_units;
  for (unsigned k = threadIdx.x / 32; k < open; k += S::warps) {
    const Payload& p = s.payloads[k];
    const unsigned most = count * S::element_words;
    if ((elements >> k & 1) != 0) {
      if (threadIdx.x % 32 == 0) s.places[k] = {std::uint64_t{unit} * S::words, most, false};
      continue;
    }
    std::uint64_t at = sizeof(Header) / 4;
    std::uint32_t entry = raw_unit;
    if (p.header.raw != 0) {
      at += std::uint64_t{unit} * S::words;
    } else {
      entry = p.directory()[unit];
      const auto part = warp_sum(static_cast<std::uint32_t>(
          directory_part<T, 32>(p.directory(), before * chapter_units, unit)));
      std::uint64_t slot = 0;
      while (before != 0 && slot == 0) slot = codec::cuda::load_slot(&chapter[before].begins[k]);
      const std::uint64_t begin = (slot & codec::cuda::slot_size) + part;
      if (unit != 0 && unit % chapter_units == 0 && threadIdx.x % 32 == 0) {
        codec::cuda::store_slot(&chapter[unit / chapter_units].begins[k],
                                codec::cuda::slot_total | begin);
      }
      at += directory_bytes(units) / 4 + begin;
    }
    const unsigned words = entry == raw_unit ? most : entry;
    if (threadIdx.x % 32 != 0) continue;
    s.places[k] = {0, 0, false};
    if (words > most || at + words > p.bytes / 4) {
      raise(state, {k, unit, words > most ? Status::corrupt : Status::truncated});
      continue;
    }
    s.places[k] = {at, words, entry == raw_unit};
    if (unit + 1 == units && (at + words) * 4 != p.bytes) {
      raise(state, {k, units, Status::corrupt});  // the units fill the payload exactly
    }
  }
  __syncthreads();
}

/// The checksum part of what is before a payload's units, of which `unit` is this task's; by one
/// thread.
__device__ inline std::uint32_t weigh_front(const Payload& p, std::uint32_t unit,
                                            std::uint32_t units) {
  std::uint32_t sum = 0;
  if (p.header.raw == 0 && unit < units) {
    constexpr unsigned first = sizeof(Header) / 4;
    const std::uint16_t* entries = p.directory();
    sum += weigh(std::uint32_t{entries[unit]} << (unit % 2 * 16), first + unit / 2);
    if (unit + 1 == units && units % 2 != 0) {
      sum += weigh(std::uint32_t{entries[units]} << 16, first + units / 2);
    }
  }
  if (unit != 0) return sum;
  for (unsigned i = 0; i < sizeof(Header) / 4; ++i) {
    if (i != 1) sum += weigh(p.words()[i], i);
  }
  return sum;
}

/// Whether a summand is sound, but for what its units hold; behind all tasks.
template <class T>
__device__ Status judge_summand(const SummandsShared<T>& s, const SumSegment& segment,
                                const SumState& state, unsigned k) {
  if (s.opened[k] != Status::ok || (segment.elements >> k & 1) != 0) return s.opened[k];
  const Status status = found(state, k);
  if (status != Status::ok) return status;
  const Payload& p = s.payloads[k];
  if (p.header.count == 0 && p.bytes != sizeof(Header)) return Status::corrupt;
  const auto* sums = const_cast<const volatile std::uint32_t*>(state.checksums);
  if (sums[k] != p.header.checksum) return Status::corrupt;
  return p.header.raw != 0 || step_is_valid<T>(p.header) ? Status::ok : Status::corrupt;
}

/// Of headers that are sound: the sum's, without its checksum.
template <class T>
__device__ Status sum_header(const SummandsShared<T>& s, unsigned summands, Header& sum) {
  sum = s.payloads[0].header;
  sum.checksum = 0;
  for (unsigned k = 1; k < summands; ++k) {
    const Status status = join(sum, s.payloads[k].header);
    if (status != Status::ok) return status;
  }
  const std::size_t front = directory_bytes(unit_count(Traits<T>::type, sum.count));
  return sum.count == 0 || front < sum.count * sizeof(T) ? Status::ok : Status::inexact;
}

/// Writes the header, where there is a sum; by one thread, behind all tasks.
template <class T>
__device__ Status finish_sum(const SummandsShared<T>& s, const SumSegment& segment,
                             const SegmentState& state, const SumState& sums,
                             std::uint64_t& bytes) {
  bytes = 0;
  for (unsigned k = 0; k < segment.summands; ++k) {
    const Status status = judge_summand<T>(s, segment, sums, k);
    if (status != Status::ok) return status;
  }
  Header header;
  Status status = sum_header<T>(s, segment.summands, header);
  if (status == Status::ok) status = found(sums, sum_stage);
  if (status != Status::ok) return status;
  const std::uint64_t extent = *const_cast<const volatile std::uint64_t*>(&state.extent);
  const std::uint64_t front = directory_bytes(unit_count(Traits<T>::type, segment.count));
  const std::uint64_t size = sizeof(Header) + front + 4 * extent;
  if (segment.count != 0 && size >= sizeof(Header) + segment.count * sizeof(T)) {
    return Status::inexact;
  }
  std::uint32_t words[sizeof(Header) / 4];
  memcpy(words, &header, sizeof header);
  std::uint32_t sum = *const_cast<const volatile std::uint32_t*>(&state.checksum);
  for (unsigned i = 0; i < sizeof(Header) / 4; ++i) sum += weigh(words[i], i);
  words[1] = sum;
  auto* out = reinterpret_cast<std::uint32_t*>(segment.out);
  for (unsigned i = 0; i < sizeof(Header) / 4; ++i) out[i] = words[i];
  bytes = size;
  return Status::ok;
}

}  // namespace mpress::codec::szp::cuda
