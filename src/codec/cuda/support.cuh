// What the CUDA twins share: batches of segments, the order in which units are placed, checksums,
// reports, and the payload that keeps its elements as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/checksum.hpp"
#include "codec/codec_cuda.hpp"
#include "codec/cuda/unit.hpp"
#include "codec/cuda/warp.cuh"

namespace mpress::codec::cuda {

namespace {
__global__ void stand_for_unit() {}
const CudaUnit cuda_unit(reinterpret_cast<const void*>(&stand_for_unit));
}  // namespace

// ---- Workspace ------------------------------------------------------------------------------

/// Segments of one launch, which travel as its parameter; longer batches are several launches.
inline constexpr unsigned max_batch = 256;
static_assert(max_batch >= max_common_range);

/// The head of a workspace. Zero between calls but for `sequence`.
struct alignas(256) Control {
  std::uint32_t ticket;         ///< the next task
  std::uint32_t segments_done;  ///< of this launch
  std::uint32_t raw_segments;   ///< left to copy_raw()
  std::uint32_t raw_done;       ///< blocks of copy_raw() that are through
  std::uint32_t sequence;       ///< launches so far
};

/// A segment while its tasks run. Zero between calls.
struct alignas(32) SegmentState {
  std::uint32_t tasks_done;  ///< and flagged_task
  std::uint32_t checksum;    ///< behind tasks_done: end_tasks() adds to both at once
  std::uint32_t status;      ///< the gravest Status so far
  std::uint32_t raw;         ///< to be kept as it is, by copy_raw()
  std::uint64_t extent;      ///< of all units, in the codec's own unit of size
};

struct Workspace {
  Control* control;
  SegmentState* states;
  std::uint64_t* slots;  ///< one a task of this launch, zero between calls
};

inline std::size_t workspace_bytes(std::size_t tasks, std::size_t segments) {
  const std::size_t states = std::min<std::size_t>(segments, max_batch);
  return sizeof(Control) + states * sizeof(SegmentState) + tasks * sizeof(std::uint64_t);
}

inline Workspace workspace_of(void* memory, std::size_t segments) {
  auto* bytes = static_cast<unsigned char*>(memory);
  auto* states = reinterpret_cast<SegmentState*>(bytes + sizeof(Control));
  const std::size_t count = std::min<std::size_t>(segments, max_batch);
  return {reinterpret_cast<Control*>(bytes), states,
          reinterpret_cast<std::uint64_t*>(states + count)};
}

// ---- Batches --------------------------------------------------------------------------------

/// A segment as kernels see it; `in` and `out` are elements or payload.
struct Segment {
  const unsigned char* in;
  unsigned char* out;
  std::uint64_t count;  ///< elements
  std::uint64_t bytes;  ///< decoding: of the payload, or its room
  Result* result;
  const Result* encoded;  ///< decoding: where the payload's size is found, or null
};

/// A payload that a kernel reads.
struct Source {
  const unsigned char* data;
  std::uint64_t bytes;
  const Result* encoded;  ///< where its size is found instead, or null
};

/// Kernels take this as a __grid_constant__ parameter. Every segment has one task or more, also one
/// without elements, so that somebody writes its report.
template <unsigned capacity, class AnySegment = Segment>
struct Batch {
  std::uint32_t count;
  float segments_per_task;
  std::uint32_t first_task[capacity + 1];
  AnySegment segments[capacity];
};

struct Task {
  std::uint32_t segment;
  std::uint32_t index;  ///< within the segment
  std::uint32_t tasks;  ///< of the segment
};

template <unsigned capacity, class AnySegment>
__device__ Task find_task(const Batch<capacity, AnySegment>& batch, std::uint32_t task) {
  std::uint32_t low = 0;
  if constexpr (capacity > 1) {
    // Segments of a batch are often alike: then the first guess is right, and one line of the
    // parameters is read, not six after each other.
    auto middle =
        min(static_cast<std::uint32_t>((static_cast<float>(task) + 0.5f) * batch.segments_per_task),
            batch.count - 1);
    for (std::uint32_t high = batch.count;; middle = (low + high) / 2) {
      if (batch.first_task[middle] > task) {
        high = middle;
      } else if (batch.first_task[middle + 1] <= task) {
        low = middle + 1;
      } else {
        low = middle;
        break;
      }
    }
  }
  const std::uint32_t first = batch.first_task[low];
  return {low, task - first, batch.first_task[low + 1] - first};
}

inline Segment segment_of(const EncodeSegment& s) {
  return {static_cast<const unsigned char*>(s.elements),
          static_cast<unsigned char*>(s.payload),
          s.count,
          0,
          s.result,
          nullptr};
}

inline Segment segment_of(const DecodeSegment& s) {
  return {static_cast<const unsigned char*>(s.payload),
          static_cast<unsigned char*>(s.elements),
          s.count,
          s.bytes,
          s.result,
          s.encoded};
}

/// Calls `launch(batch)` for every max_batch segments, or as many as the parameters of a kernel
/// hold, with the smallest capacity that holds them.
/// `tasks(count)` is the number of tasks of a segment, at least 1.
template <class AnySegment, class Tasks, class Launch>
cudaError_t for_each_batch(std::span<const AnySegment> segments, Tasks tasks, Launch launch) {
  using Mine = decltype(segment_of(segments[0]));
  constexpr auto that_fit = [](std::size_t bytes) {
    return (bytes - 64) / (sizeof(Mine) + sizeof(std::uint32_t));
  };
  // Parameters above 4 KiB slow a launch down.
  constexpr auto few = static_cast<unsigned>(std::min<std::size_t>(64, that_fit(4096)));
  constexpr auto many = static_cast<unsigned>(std::min<std::size_t>(max_batch, that_fit(32000)));
  const auto fill = [&]<unsigned capacity>(std::span<const AnySegment> part,
                                           Batch<capacity, Mine>& batch) {
    batch.count = static_cast<std::uint32_t>(part.size());
    batch.first_task[0] = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      batch.segments[i] = segment_of(part[i]);
      batch.first_task[i + 1] =
          batch.first_task[i] + static_cast<std::uint32_t>(tasks(part[i].count));
    }
    batch.segments_per_task =
        static_cast<float>(batch.count) / static_cast<float>(batch.first_task[batch.count]);
    launch(batch);
  };
  for (; !segments.empty();
       segments = segments.subspan(std::min<std::size_t>(many, segments.size()))) {
    const auto part = segments.first(std::min<std::size_t>(many, segments.size()));
    if (part.size() == 1) {
      Batch<1, Mine> batch;
      fill(part, batch);
    } else if (part.size() <= few) {
      Batch<few, Mine> batch;
      fill(part, batch);
    } else {
      Batch<many, Mine> batch;
      fill(part, batch);
    }
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// ---- Order ----------------------------------------------------------------------------------

/// The next task, the same for all threads of the block. Tasks start in the order of their numbers,
/// so a task may wait for any before it, whatever else runs on the device.
__device__ inline std::uint32_t take_task(Control* control) {
  __shared__ std::uint32_t taken;
  __syncthreads();
  if (threadIdx.x == 0) taken = atomicAdd(&control->ticket, 1u);
  __syncthreads();
  return taken;
}

// A slot: 0 while unknown, else the size of a unit, or of all up to it (Merrill and Garland:
// Single-pass parallel prefix scan with decoupled look-back, 2016).
inline constexpr std::uint64_t slot_own = std::uint64_t{1} << 62;
inline constexpr std::uint64_t slot_total = std::uint64_t{2} << 62;
inline constexpr std::uint64_t slot_size = slot_own - 1;

__device__ inline std::uint64_t load_slot(const std::uint64_t* slot) {
  return *static_cast<const volatile std::uint64_t*>(slot);
}
__device__ inline void store_slot(std::uint64_t* slot, std::uint64_t value) {
  *static_cast<volatile std::uint64_t*>(slot) = value;
}

/// Tells the units behind `unit` its size, by one thread; as early as the size is known.
__device__ inline void publish_unit(std::uint64_t* slots, std::uint32_t unit, std::uint64_t size) {
  store_slot(slots + unit, (unit == 0 ? slot_total : slot_own) | size);
}

/// The sum of the sizes of units 0 to `unit` - 1 of a segment, whose slots start at `slots`, behind
/// publish_unit(). Called by all lanes of one warp.
__device__ inline std::uint64_t look_back(std::uint64_t* slots, std::uint32_t unit,
                                          std::uint64_t size) {
  if (unit == 0) return 0;
  // Whatever waits here reads the same few lines of the second-level cache: a round trip takes
  // 32 neighbouring slots, and waits for none behind the nearest total.
  const unsigned lane = threadIdx.x % 32;
  std::uint64_t before = 0;
  for (std::int64_t last = std::int64_t{unit} - 1;; last -= 32) {
    const std::int64_t mine = last - std::int64_t{lane};
    std::uint64_t slot = slot_total;
    unsigned totals;
    unsigned nearest;
    do {
      if (mine >= 0) slot = load_slot(slots + mine);
      totals = __ballot_sync(~0u, (slot & slot_total) != 0);
      nearest = totals == 0 ? 31 : __ffs(totals) - 1;
    } while (__any_sync(~0u, lane <= nearest && slot == 0));
    std::uint64_t part = lane <= nearest ? slot & slot_size : 0;
    for (unsigned step = 16; step > 0; step /= 2) part += __shfl_xor_sync(~0u, part, step);
    before += part;
    if (totals != 0) break;
  }
  if (lane == 0) store_slot(slots + unit, slot_total | (before + size));
  return before;
}

/// Both: the sum of the sizes before `unit`.
__device__ inline std::uint64_t place_unit(std::uint64_t* slots, std::uint32_t unit,
                                           std::uint64_t size) {
  if (threadIdx.x % 32 == 0) publish_unit(slots, unit, size);
  return look_back(slots, unit, size);
}

// ---- Bits -----------------------------------------------------------------------------------

/// The bits of `a` where `mask` has ones, else those of `b`: one instruction, which the compiler
/// does not find for a constant mask.
__device__ __forceinline__ std::uint32_t select_bits(std::uint32_t mask, std::uint32_t a,
                                                     std::uint32_t b) {
  std::uint32_t selected;
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(selected) : "r"(mask), "r"(a), "r"(b));
  return selected;
}

// ---- Prefetches -------------------------------------------------------------------------------

__device__ inline void prefetch(const void* sector) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(sector));
}

/// Asks for what a task will read of a payload of `bytes` bytes, by all threads: of the `head`
/// bytes of header and directory before its units, and of its share of the rest, if units were all
/// of one size. In a call of one wave all of the payload is on its way then, while headers and
/// directories are still looked at.
__device__ inline void prefetch_payload(const unsigned char* payload, std::uint64_t bytes,
                                        std::uint64_t head, const Task& task) {
  constexpr unsigned sector = 32;
  constexpr unsigned rounds = 4;
  const std::uint64_t at = sector * threadIdx.x;
  if (at < min(head, bytes)) prefetch(payload + at);
  const auto sectors = static_cast<std::uint32_t>(min(bytes / sector, std::uint64_t{~0u}));
  const std::uint32_t share = sectors / task.tasks + 1;
  const std::uint64_t first = std::uint64_t{share} * task.index;
#pragma unroll
  for (unsigned round = 0; round < rounds; ++round) {
    const std::uint32_t mine = threadIdx.x + round * blockDim.x;
    if (mine < share && first + mine < sectors) prefetch(payload + (first + mine) * sector);
  }
}

// ---- Sums, ends and reports -----------------------------------------------------------------

/// Adds the checksum parts of a warp's lanes to the segment's.
__device__ inline void add_checksum(SegmentState& state, std::uint32_t part) {
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0 && part != 0) atomicAdd(&state.checksum, part);
}

/// What the reports of this launch carry, never 0; read before end_segment().
__device__ inline std::uint32_t sequence_of(const Control* control) {
  const std::uint32_t before = *static_cast<const volatile std::uint32_t*>(&control->sequence);
  return before == ~0u ? 1 : before + 1;
}

/// Adds to two neighbouring counters at once, in acquire and release order: that is lighter than
/// __threadfence(), which takes longer than the atomic itself.
__device__ inline std::uint64_t add_in_order(std::uint32_t* counters, std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(counters), "l"(value)
               : "memory");
  return before;
}

/// True for the one thread of the segment that raises it from ok: that flags its task.
__device__ inline bool raise_status(SegmentState& state, Status status) {
  return atomicMax(&state.status, static_cast<std::uint32_t>(status)) == 0;
}

/// In SegmentState::tasks_done: a task was flagged.
inline constexpr std::uint32_t flagged_task = 1u << 31;

/// What the last of a segment's tasks finds.
struct SegmentEnd {
  bool last;               ///< else nothing below is known
  bool flagged;            ///< by some thread
  Status status;           ///< the gravest, if a thread that raised it flagged its task
  std::uint32_t checksum;  ///< sum of all parts
  std::uint32_t sequence;  ///< what the report carries
};

/// Ends `ended` of a segment's `tasks` tasks (fewer than 2^31) and adds the checksum parts of the
/// block's threads, all in one atomic operation, which also tells of what is rare: so the last
/// block seldom reads more. Of all a segment's threads one at most may set `flag`. Where the result
/// is `last`, all that other blocks wrote for the segment is visible to the block. Called by all
/// threads, at most 1024, whole warps.
__device__ inline SegmentEnd end_tasks(const Control* control, SegmentState& state,
                                       std::uint32_t tasks, std::uint32_t ended, std::uint32_t part,
                                       bool flag) {
  __shared__ std::uint32_t parts[32];
  __shared__ SegmentEnd end;
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  flag = __syncthreads_or(flag) != 0;
  if (threadIdx.x == 0) {
    const std::uint32_t sequence = sequence_of(control);
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) part += parts[warp];
    const std::uint64_t own = std::uint64_t{part} << 32 | (flag ? flagged_task : 0) | ended;
    const std::uint64_t done = add_in_order(&state.tasks_done, own) + own;
    end.last = (static_cast<std::uint32_t>(done) & ~flagged_task) == tasks;
    end.flagged = (static_cast<std::uint32_t>(done) & flagged_task) != 0;
    end.status = Status::ok;
    if (end.last && end.flagged) {
      end.status = static_cast<Status>(*static_cast<volatile std::uint32_t*>(&state.status));
    }
    end.checksum = static_cast<std::uint32_t>(done >> 32);
    end.sequence = sequence;
  }
  __syncthreads();
  return end;
}

/// The same for one task, which cannot fail.
__device__ inline bool is_last_task(SegmentState& state, std::uint32_t tasks, std::uint32_t part) {
  __shared__ std::uint32_t parts[32];
  __shared__ bool last;
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) part += parts[warp];
    const std::uint64_t done = add_in_order(&state.tasks_done, std::uint64_t{part} << 32 | 1);
    last = static_cast<std::uint32_t>(done) == tasks - 1;
  }
  __syncthreads();
  return last;
}

/// Writes a report, by one thread, after everything that it reports of. `result` may be null.
///
/// What it reports of must be visible to the whole system first: the payload may lie in memory of
/// another device, and whoever reads the report may be a host or a device of another process. The
/// fence for that is the release at system scope in the store itself; it costs one thread a
/// segment. It covers what other threads wrote, since release is cumulative (PTX, "Memory
/// Consistency Model", causality order): their writes come before this thread by a barrier in their
/// block, and by add_in_order(), or release and acquire at device scope, between blocks. So device
/// scope is enough everywhere before, and a __threadfence_system() is needed nowhere else.
__device__ inline void report(Result* result, std::uint64_t bytes, Status status,
                              std::uint32_t sequence) {
  if (!result) return;
  // One store of 16 bytes, so that nothing has to arrive at the host before the sequence may leave.
  const std::uint64_t rest = static_cast<std::uint64_t>(status) | std::uint64_t{sequence} << 32;
  static_assert(offsetof(Result, status) == 8 && offsetof(Result, sequence) == 12);
  asm volatile(
      "{.reg .b128 all;\n\t"
      "mov.b128 all, {%1, %2};\n\t"
      "st.release.sys.global.b128 [%0], all;}" ::"l"(__cvta_generic_to_global(result)),
      "l"(bytes), "l"(rest)
      : "memory");
}

/// Ends a segment, called by all threads of the block whose task was its last: leaves slots and
/// state as the next call needs them. `keep_state`: copy_raw() still reads it. Needs no barrier
/// before it where the block has all it wants to know from end_tasks(): then thread 0 may report at
/// the same time.
template <unsigned capacity, class AnySegment>
__device__ void end_segment(const Batch<capacity, AnySegment>& batch, const Workspace& work,
                            std::uint32_t segment, bool slots, bool keep_state) {
  if (slots) {
    const std::uint32_t end = batch.first_task[segment + 1];
    for (std::uint32_t i = batch.first_task[segment] + threadIdx.x; i < end; i += blockDim.x) {
      work.slots[i] = 0;
    }
  }
  if (threadIdx.x != blockDim.x - 1) return;
  SegmentState& state = work.states[segment];
  if (keep_state) {
    state.raw = 1;
    state.checksum = 0;
    atomicAdd(&work.control->raw_segments, 1u);
  } else {
    state = {};
  }
  state.tasks_done = 0;
  // Nobody reads what was left before the next kernel, so that no order is needed here.
  if (batch.count == 1 || atomicAdd(&work.control->segments_done, 1u) == batch.count - 1) {
    work.control->segments_done = 0;
    work.control->ticket = 0;
    work.control->sequence = sequence_of(work.control);
  }
}

/// Sum of words with their weights; `first` is the index of words[0] in the payload.
__device__ inline std::uint32_t weigh(std::uint32_t word, std::uint64_t index) {
  return word * checksum_weight(static_cast<std::uint32_t>(index));
}

// ---- Payloads that keep the elements as they are ----------------------------------------------

/// Behind every encoder: copies the segments that it left raw, and reports them. A Form says what
/// is around the elements:
///   std::size_t elements_at               bytes before them
///   __device__ std::uint64_t close(const Segment&, std::uint32_t checksum) const
///                                         writes the rest, one thread; returns the payload's size
/// `checksum` is that of the elements' words alone, where they stand in the payload.
template <class Form, unsigned capacity>
__global__ void copy_raw(const __grid_constant__ Batch<capacity> batch, Workspace work, Form form,
                         unsigned element_bytes) {
  if (*static_cast<volatile std::uint32_t*>(&work.control->raw_segments) == 0) return;
  for (std::uint32_t s = 0; s < batch.count; ++s) {
    if (work.states[s].raw == 0) continue;
    const Segment& segment = batch.segments[s];
    const auto* in = reinterpret_cast<const std::uint32_t*>(segment.in);
    auto* out = reinterpret_cast<std::uint32_t*>(segment.out + form.elements_at);
    const std::uint64_t words = segment.count * (element_bytes / 4);
    std::uint32_t sum = 0;
    const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
         i += stride) {
      const std::uint32_t word = in[i];
      out[i] = word;
      sum += weigh(word, form.elements_at / 4 + i);
    }
    add_checksum(work.states[s], sum);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&work.control->raw_done, 1u) != gridDim.x - 1) return;
  __threadfence();
  for (std::uint32_t s = 0; s < batch.count; ++s) {
    SegmentState& state = work.states[s];
    if (state.raw == 0) continue;
    const std::uint32_t sum = *static_cast<volatile std::uint32_t*>(&state.checksum);
    const std::uint64_t bytes = form.close(batch.segments[s], sum);
    report(batch.segments[s].result, bytes, Status::ok, work.control->sequence);
    state = {};
  }
  work.control->raw_segments = 0;
  work.control->raw_done = 0;
}

/// Multiprocessors of the current device; asked once a device.
unsigned multiprocessors();

/// Of the current device, times ten; asked once a device.
unsigned compute_capability();

template <class Form, unsigned capacity>
void launch_copy_raw(const Batch<capacity>& batch, const Workspace& work, const Form& form,
                     ElementType type, cudaStream_t stream) {
  copy_raw<<<multiprocessors() * 2, 512, 0, stream>>>(batch, work, form,
                                                      static_cast<unsigned>(element_size(type)));
}

}  // namespace mpress::codec::cuda
