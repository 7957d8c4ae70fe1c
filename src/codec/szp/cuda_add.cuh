// What is around adding units: where they are in both payloads, and what becomes of a segment.
#pragma once

#include "codec/szp/cuda_payload.cuh"

namespace mpress::codec::szp::cuda {

using codec::cuda::SumSegment;

// The host looks at one payload after the other and stops at the first error. Here every task
// raises what it finds, with its place in that order, and the first one is reported.
enum class Stage : std::uint8_t { a, b, sum };

struct Finding {
  Stage stage;
  std::uint32_t unit;  ///< the number of units: behind them all
  Status status;
};

/// What is known of a segment's summands while its tasks run. Zero between calls.
struct alignas(16) SumState {
  unsigned long long first;    ///< the complement of the first Finding; 0: none
  std::uint32_t checksums[2];  ///< of the summands
};

__device__ inline void raise(SumState& state, const Finding& f) {
  const unsigned long long order = static_cast<unsigned long long>(f.stage) << 48 |
                                   static_cast<unsigned long long>(f.unit) << 8 |
                                   static_cast<unsigned long long>(f.status);
  atomicMax(&state.first, ~order);
}

/// Of the stage; ok where the first finding is of another one.
__device__ inline Status found(const SumState& state, Stage stage) {
  const unsigned long long first = *const_cast<const volatile unsigned long long*>(&state.first);
  if (first == 0 || ~first >> 48 != static_cast<unsigned long long>(stage)) return Status::ok;
  return static_cast<Status>(~first & 255);
}

/// Units whose directory entries a task adds up at most. The first task of each such chapter but
/// the first tells the others where it begins in both payloads; slots as in look_back().
inline constexpr unsigned chapter_units = 1024;

struct Chapter {
  std::uint64_t begins[2];
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

/// What of a unit's words the payload has.
struct UnitPlace {
  std::uint64_t at;  ///< in words of the payload
  unsigned words;    ///< 0 as well where they are not there
  bool raw;
};

struct LocateShared {
  std::uint64_t parts[4];  ///< by warp; of the first payload, and 32 bits higher of the second
  std::uint64_t begins[2];
};

/// Finds the unit in those payloads that are `open`, and raises what is wrong with directories.
/// `chapter`: that of the segment's first unit. Called by all threads of a block, once.
template <class T>
__device__ __forceinline__ void locate_units(LocateShared& s, const Payload (&payloads)[2],
                                             const bool (&open)[2], std::uint32_t unit,
                                             std::uint32_t units, unsigned count, Chapter* chapter,
                                             SumState& state, UnitPlace (&places)[2]) {
  using S = Shape<T>;
  const std::uint32_t before = unit == 0 ? 0 : (unit - 1) / chapter_units;
  std::uint64_t part = 0;
  std::uint32_t entries[2] = {raw_unit, raw_unit};
#pragma unroll
  for (unsigned k = 0; k < 2; ++k) {
    if (!open[k] || payloads[k].header.raw != 0) continue;
    entries[k] = payloads[k].directory()[unit];
    part += directory_part<T>(payloads[k].directory(), before * chapter_units, unit) << (32 * k);
  }
  for (unsigned step = 16; step > 0; step /= 2) part += __shfl_xor_sync(~0u, part, step);
  if (threadIdx.x % 32 == 0) s.parts[threadIdx.x / 32] = part;
#pragma unroll
  for (unsigned k = 0; k < 2; ++k) {
    if (threadIdx.x != k || !open[k] || payloads[k].header.raw != 0) continue;
    std::uint64_t slot = 0;
    while (before != 0 && slot == 0) slot = codec::cuda::load_slot(&chapter[before].begins[k]);
    s.begins[k] = slot & codec::cuda::slot_size;
  }
  __syncthreads();
  part = 0;
  for (unsigned w = 0; w < S::warps; ++w) part += s.parts[w];
#pragma unroll
  for (unsigned k = 0; k < 2; ++k) {
    places[k] = {0, 0, false};
    if (!open[k]) continue;
    const Payload& p = payloads[k];
    const auto stage = static_cast<Stage>(k);
    const unsigned most = count * S::element_words;
    std::uint64_t at = sizeof(Header) / 4;
    const std::uint32_t entry = entries[k];
    if (p.header.raw != 0) {
      at += std::uint64_t{unit} * S::words;
    } else {
      const std::uint64_t begin = s.begins[k] + (part >> (32 * k) & 0xFFFFFFFF);
      if (unit != 0 && unit % chapter_units == 0 && threadIdx.x == 0) {
        codec::cuda::store_slot(&chapter[unit / chapter_units].begins[k],
                                codec::cuda::slot_total | begin);
      }
      at += directory_bytes(units) / 4 + begin;
    }
    const unsigned words = entry == raw_unit ? most : entry;
    if (words > most || at + words > p.bytes / 4) {
      const Status status = words > most ? Status::corrupt : Status::truncated;
      if (threadIdx.x == 0) raise(state, {stage, unit, status});
      continue;
    }
    places[k] = {at, words, entry == raw_unit};
    if (unit + 1 == units && (at + words) * 4 != p.bytes && threadIdx.x == 0) {
      raise(state, {stage, units, Status::corrupt});  // the units fill the payload exactly
    }
  }
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

/// Whether units may be added, by what sound headers say.
__device__ inline Status compare_headers(const Header& a, const Header& b) {
  if (a.raw != 0 || b.raw != 0) return Status::inexact;
  return a.step != b.step ? Status::mismatched : Status::ok;
}

/// The sum's header, without the checksum.
template <class T>
__device__ Status sum_header(const Header& a, const Header& b, Header& sum) {
  sum = {format_version, Traits<T>::type, a.mode, a.count == 0, 0, a.count, 0, 0};
  if (b.mode == Mode::dense) sum.mode = b.mode;
  if (a.count == 0) return Status::ok;
  Status status = compare_headers(a, b);
  if (status != Status::ok) return status;
  sum.step = a.step;
  status = add_bounds(a.step, a.bound, b.bound, sum.bound);
  if (status != Status::ok) return status;
  const std::size_t front =
      sizeof(Header) + directory_bytes(unit_count(Traits<T>::type, sum.count));
  return front < sizeof(Header) + sum.count * sizeof(T) ? Status::ok : Status::inexact;
}

/// Whether a summand is sound, but for what its units hold; behind all tasks. `opened` is what
/// open_payload() says.
template <class T>
__device__ Status judge_summand(const Payload& p, Status opened, const SumState& state,
                                Stage stage) {
  if (opened != Status::ok) return opened;
  const Status status = found(state, stage);
  if (status != Status::ok) return status;
  if (p.header.count == 0 && p.bytes != sizeof(Header)) return Status::corrupt;
  const auto* sums = const_cast<const volatile std::uint32_t*>(state.checksums);
  if (sums[static_cast<unsigned>(stage)] != p.header.checksum) return Status::corrupt;
  return p.header.raw != 0 || step_is_valid<T>(p.header) ? Status::ok : Status::corrupt;
}

/// Writes the header, where there is a sum; by one thread, behind all tasks.
template <class T>
__device__ Status finish_sum(const SumSegment& segment, const SegmentState& state,
                             const SumState& sums, std::uint64_t& bytes) {
  bytes = 0;
  Payload payloads[2];
  for (unsigned k = 0; k < 2; ++k) {
    const Status opened = open_payload<T>(segment.from[k], segment.count, payloads[k]);
    const Status status = judge_summand<T>(payloads[k], opened, sums, static_cast<Stage>(k));
    if (status != Status::ok) return status;
  }
  Header header;
  Status status = sum_header<T>(payloads[0].header, payloads[1].header, header);
  if (status == Status::ok) status = found(sums, Stage::sum);
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
