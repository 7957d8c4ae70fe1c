// What the CUDA twins share: batches of segments, the order in which units are placed, checksums,
// reports, and the payload that keeps its elements as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/checksum.hpp"
#include "codec/codec_cuda.hpp"
#include "codec/cuda_warp.cuh"

namespace mpress::codec::cuda {

// ---- Workspace ------------------------------------------------------------------------------

/// Segments of one launch, which travel as its parameter; longer batches are several launches.
inline constexpr unsigned max_batch = 256;

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
  std::uint32_t tasks_done;
  std::uint32_t checksum;  ///< behind tasks_done: is_last_task() adds to both at once
  std::uint32_t status;    ///< the gravest Status so far
  std::uint32_t raw;       ///< to be kept as it is, by copy_raw()
  std::uint64_t extent;    ///< of all units, in the codec's own unit of size
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

/// Kernels take this as a __grid_constant__ parameter. Every segment has one task or more, also one
/// without elements, so that somebody writes its report.
template <unsigned capacity>
struct Batch {
  Segment segments[capacity];
  std::uint32_t first_task[capacity + 1];
  std::uint32_t count;
};

struct Task {
  std::uint32_t segment;
  std::uint32_t index;  ///< within the segment
  std::uint32_t tasks;  ///< of the segment
};

template <unsigned capacity>
__device__ Task find_task(const Batch<capacity>& batch, std::uint32_t task) {
  std::uint32_t low = 0;
  if constexpr (capacity > 1) {
    for (std::uint32_t high = batch.count; high - low > 1;) {
      const std::uint32_t middle = (low + high) / 2;
      (batch.first_task[middle] <= task ? low : high) = middle;
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

/// Calls `launch(batch)` for every max_batch segments, with the smallest capacity that holds them.
/// `tasks(count)` is the number of tasks of a segment, at least 1.
template <class AnySegment, class Tasks, class Launch>
cudaError_t for_each_batch(std::span<const AnySegment> segments, Tasks tasks, Launch launch) {
  const auto fill = [&]<unsigned capacity>(std::span<const AnySegment> part,
                                           Batch<capacity>& batch) {
    batch.count = static_cast<std::uint32_t>(part.size());
    batch.first_task[0] = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      batch.segments[i] = segment_of(part[i]);
      batch.first_task[i + 1] =
          batch.first_task[i] + static_cast<std::uint32_t>(tasks(part[i].count));
    }
    launch(batch);
  };
  for (; !segments.empty();
       segments = segments.subspan(std::min<std::size_t>(max_batch, segments.size()))) {
    const auto part = segments.first(std::min<std::size_t>(max_batch, segments.size()));
    if (part.size() == 1) {
      Batch<1> batch;
      fill(part, batch);
    } else if (part.size() <= 64) {  // parameters above 4 KiB slow a launch down
      Batch<64> batch;
      fill(part, batch);
    } else {
      Batch<max_batch> batch;
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

// ---- Sums, ends and reports -----------------------------------------------------------------

/// Adds the checksum parts of a warp's lanes to the segment's.
__device__ inline void add_checksum(SegmentState& state, std::uint32_t part) {
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0 && part != 0) atomicAdd(&state.checksum, part);
}

__device__ inline void raise_status(SegmentState& state, Status status) {
  atomicMax(&state.status, static_cast<std::uint32_t>(status));
}

/// Ends a task. True for all threads of the block that ends its segment's last one: everything that
/// other blocks wrote for the segment is visible to it then.
__device__ inline bool is_last_task(SegmentState& state, std::uint32_t tasks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&state.tasks_done, 1u) == tasks - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// The same, and adds the checksum parts of the block's threads to the segment's, all in one atomic
/// operation. At most 1024 threads, whole warps.
__device__ inline bool is_last_task(SegmentState& state, std::uint32_t tasks, std::uint32_t part) {
  __shared__ std::uint32_t parts[32];
  __shared__ bool last;
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) part += parts[warp];
    // A lighter order than that of __threadfence(), which takes longer than the atomic itself.
    std::uint64_t done;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(done)
                 : "l"(&state.tasks_done), "l"(std::uint64_t{part} << 32 | 1)
                 : "memory");
    last = static_cast<std::uint32_t>(done) == tasks - 1;
  }
  __syncthreads();
  return last;
}

/// Writes a report, by one thread, after everything that it reports of. `result` may be null.
__device__ inline void report(Result* result, std::uint64_t bytes, Status status,
                              std::uint32_t sequence) {
  if (!result) return;
  auto* out = reinterpret_cast<volatile Result*>(result);
  out->bytes = bytes;
  *reinterpret_cast<volatile std::uint8_t*>(&result->status) = static_cast<std::uint8_t>(status);
  __threadfence_system();
  out->sequence = sequence;
}

/// Ends a segment, called by all threads of the block whose task was its last: leaves slots and
/// state as the next call needs them. `keep_state`: copy_raw() still reads it.
template <unsigned capacity>
__device__ void end_segment(const Batch<capacity>& batch, const Workspace& work,
                            std::uint32_t segment, bool slots, bool keep_state) {
  if (slots) {
    const std::uint32_t end = batch.first_task[segment + 1];
    for (std::uint32_t i = batch.first_task[segment] + threadIdx.x; i < end; i += blockDim.x) {
      work.slots[i] = 0;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  SegmentState& state = work.states[segment];
  if (keep_state) {
    state.raw = 1;
    state.checksum = 0;
    atomicAdd(&work.control->raw_segments, 1u);
  } else {
    state = {};
  }
  state.tasks_done = 0;
  __threadfence();
  if (atomicAdd(&work.control->segments_done, 1u) == batch.count - 1) {
    work.control->segments_done = 0;
    work.control->ticket = 0;
    ++work.control->sequence;
  }
}

/// What the reports of this launch carry; not before a segment's last task, and before
/// end_segment().
__device__ inline std::uint32_t sequence_of(const Control* control) {
  return *static_cast<const volatile std::uint32_t*>(&control->sequence) + 1;
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

template <class Form, unsigned capacity>
void launch_copy_raw(const Batch<capacity>& batch, const Workspace& work, const Form& form,
                     ElementType type, cudaStream_t stream) {
  copy_raw<<<multiprocessors() * 2, 512, 0, stream>>>(batch, work, form,
                                                      static_cast<unsigned>(element_size(type)));
}

}  // namespace mpress::codec::cuda
