// szp's sums on a GPU: a thread block a unit, as in the encoder. Quanta of both summands are added
// in registers and packed again.
#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_add.cuh"
#include "codec/szp/cuda_plan.cuh"
#include "codec/szp/cuda_unpack.cuh"

namespace mpress::codec::szp::cuda {
namespace {

template <class T>
struct AddShared {
  alignas(16) std::uint32_t words[Shape<T>::buffer];  ///< the summands', then those of their sum
  EncodeShared<T> sum;
  alignas(16) std::uint32_t first[Shape<T>::threads][block_elements + 4];  ///< of 32 bits
  UnpackShared<T> unpack;
  LocateShared locate;
  std::uint32_t checksums[Shape<T>::warps][2];
};

/// A unit of both payloads.
struct UnitPair {
  const std::uint32_t* at[2];
  unsigned words[2];
  bool stored;  ///< in shared memory, one behind the other
};

/// Sums of quanta of type I lie in [-sum_reach, sum_reach). Within, 32 bits hold those of f64 units
/// that are not wide; beyond, they are added in 64 bits.
template <class T, class I>
inline constexpr I sum_reach =
    sizeof(I) < sizeof(T) ? static_cast<I>(narrow_limit) : static_cast<I>(Traits<T>::sum_limit);

/// The quanta of the thread's block. `wide`: I does not hold them, and nothing was unpacked.
template <class T, class I>
__device__ __forceinline__ Status unpack_summand(UnpackShared<T>& s, const StoredUnit& unit,
                                                 unsigned blocks, I (&q)[32], bool& wide) {
  const std::uint32_t head = unit.head();
  if ((head & ~known_head) != 0) return Status::corrupt;
  if ((head & has_exceptions) != 0) return Status::inexact;
  if ((head & is_wide) != 0) {
    if constexpr (sizeof(T) == 4) {
      return Status::corrupt;
    } else if constexpr (sizeof(I) == 4) {
      wide = true;
      return Status::inexact;
    } else {
      Parsed<std::uint64_t> p;
      std::uint64_t r[32];
      if (!unpack_quanta(s, unit, blocks, p, r)) return Status::corrupt;
#pragma unroll
      for (unsigned i = 0; i < 32; ++i) q[i] = static_cast<I>(r[i]);
      return Status::ok;
    }
  }
  Parsed<std::uint32_t> p;
  std::uint32_t r[32];
  if (!unpack_quanta(s, unit, blocks, p, r)) return Status::corrupt;
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) q[i] = static_cast<std::int32_t>(r[i]);
  return Status::ok;
}

/// The quanta of the thread's block of the first summand.
template <class T, class I>
struct FirstQuanta {
  I kept[32];

  __device__ __forceinline__ void keep(AddShared<T>&, const I (&q)[32]) {
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) kept[i] = q[i];
  }
  __device__ __forceinline__ void add_to(const AddShared<T>&, I (&q)[32]) const {
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) q[i] += kept[i];
  }
};

template <class T>
struct FirstQuanta<T, std::int32_t> {
  __device__ __forceinline__ void keep(AddShared<T>& s, const std::int32_t (&q)[32]) {
    auto* row = reinterpret_cast<int4*>(s.first[threadIdx.x]);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      row[i] = {q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]};
    }
  }
  __device__ __forceinline__ void add_to(const AddShared<T>& s, std::int32_t (&q)[32]) const {
    const auto* row = reinterpret_cast<const int4*>(s.first[threadIdx.x]);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const int4 kept = row[i];
      q[4 * i] += kept.x;
      q[4 * i + 1] += kept.y;
      q[4 * i + 2] += kept.z;
      q[4 * i + 3] += kept.w;
    }
  }
};

/// The sums of the thread's block, those before it, and what they span; other warps have been told.
/// `wide`: they are to be added in 64 bits instead, whatever the status. A barrier is behind all.
template <class T, class I>
__device__ __forceinline__ Status sum_quanta(AddShared<T>& s, const UnitPair& pair,
                                             const EncodingUnit& u, I (&q)[32], I (&before)[3],
                                             Extent<I>& e, bool& wide) {
  constexpr I reach = sum_reach<T, I>;
  const bool active = threadIdx.x < u.blocks;
  I lo = 0, hi = 0;
  const auto beyond = [&] {
    const bool any = __syncthreads_or(active && (lo < -reach || hi >= reach)) != 0;
    wide |= any && sizeof(I) < sizeof(T);
    return any;
  };
  // Registers do not hold the quanta of one summand while the other one is unpacked.
  FirstQuanta<T, I> first_quanta;
#pragma unroll 1
  for (unsigned k = 0; k < 2; ++k) {
    if (k == 1) first_quanta.keep(s, q);
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) q[i] = 0;
    const unsigned words = pair.words[k];
    if (words == 0) continue;
    unsigned first = k == 0 ? 0 : pair.words[0];
    if (!pair.stored) {
      first = 0;
      __syncthreads();
      load_words<Shape<T>::threads>(s.words, pair.at[k], words, 0, padded);
      __syncthreads();
    }
    const Status status =
        unpack_summand(s.unpack, {s.words, first, first + words}, u.blocks, q, wide);
    if (status != Status::ok) return beyond() ? Status::inexact : status;
#pragma unroll
    for (unsigned i = 0; i < 32; i += 2) extend(lo, hi, q[i], q[i + 1]);
  }
  first_quanta.add_to(s, q);
  if (const unsigned left = u.count % 32; left != 0 && threadIdx.x + 1 == u.blocks) {
    // As the encoder does it, whatever the summands hold past the end.
#pragma unroll
    for (unsigned i = 0; i < 32; i += 2) extend(lo, hi, q[i], q[i + 1]);
#pragma unroll
    for (unsigned i = 1; i < 32; ++i) {
      if (i >= left) q[i] = q[i - 1];
    }
  }
  quanta_before(s.sum, q, before);
  e = analyse(q, before, u.dense);
  extend(lo, hi, e.lo[0], e.hi[0]);
  share_range(s.sum, u, q[0], e);
  return beyond() ? Status::inexact : Status::ok;
}

/// A unit whose quanta or their sums take more than 32 bits, or might.
__device__ __noinline__ Status add_wide(AddShared<double>& s, const UnitPair& pair,
                                        const EncodingUnit& u, EncodedUnit& sum) {
  std::int64_t q[32], before[3];
  Extent<std::int64_t> e;
  bool ignored = false;
  const Status status = sum_quanta(s, pair, u, q, before, e, ignored);
  if (status != Status::ok) return status;
  const bool wide = threadIdx.x < u.blocks && (e.lo[0] < -narrow_limit || e.hi[0] >= narrow_limit);
  if (__syncthreads_or(wide) != 0) {
    sum = pack_unit(s.sum, u, q, before, {}, e, false, 0);
    return Status::ok;
  }
  std::int32_t narrow[32], narrow_before[3];
  Extent<std::int32_t> narrow_extent;
  for (unsigned i = 0; i < 32; ++i) narrow[i] = static_cast<std::int32_t>(q[i]);
  for (unsigned i = 0; i < 3; ++i) narrow_before[i] = static_cast<std::int32_t>(before[i]);
  for (unsigned i = 0; i < 4; ++i) {
    narrow_extent.lo[i] = static_cast<std::int32_t>(e.lo[i]);
    narrow_extent.hi[i] = static_cast<std::int32_t>(e.hi[i]);
  }
  share_range(s.sum, u, narrow[0], narrow_extent);  // in 32 bits, also of warps without a block
  __syncthreads();
  sum = pack_unit(s.sum, u, narrow, narrow_before, 0, narrow_extent, false, 0);
  return Status::ok;
}

/// Packs the sum into s.words and publishes its size. Without success nothing is published.
template <class T>
__device__ __forceinline__ Status add_unit(AddShared<T>& s, const UnitPair& pair,
                                           const EncodingUnit& u, EncodedUnit& sum) {
  if (pair.words[0] == 0 && pair.words[1] == 0) {
    if (threadIdx.x == 0) u.publish(0);
    return Status::ok;
  }
  std::int32_t q[32], before[3];
  Extent<std::int32_t> e;
  bool wide = false;
  const Status status = sum_quanta(s, pair, u, q, before, e, wide);
  if constexpr (sizeof(T) == 8) {
    if (wide) return add_wide(s, pair, u, sum);
  }
  if (status == Status::ok) sum = pack_unit(s.sum, u, q, before, {}, e, false, 0);
  return status;
}

/// Writes the unit in s.words, where there is room, and its directory entry. Returns the
/// thread's part of the checksum.
template <class T>
__device__ std::uint32_t write_sum(AddShared<T>& s, const SumSegment& segment, SegmentState& state,
                                   SumState& sums, const EncodingUnit& u, std::uint32_t words,
                                   std::uint32_t units) {
  if (threadIdx.x < 32) {
    const std::uint64_t place = codec::cuda::look_back(u.slots, u.task, words);
    if (threadIdx.x == 0) s.sum.place = place;
  }
  __syncthreads();
  const std::uint64_t first = (sizeof(Header) + directory_bytes(units)) / 4 + s.sum.place;
  if (first + words > sizeof(Header) / 4 + segment.count * Shape<T>::element_words) {
    if (threadIdx.x == 0) raise(sums, {Stage::sum, u.task, Status::inexact});
    return 0;
  }
  std::uint32_t part = 0;
  auto* out = reinterpret_cast<std::uint32_t*>(segment.out) + first;
  for (unsigned i = threadIdx.x; i < words; i += Shape<T>::threads) {
    const std::uint32_t word = s.words[padded(i)];
    out[i] = word;
    part += weigh(word, first + i);
  }
  if (threadIdx.x == 0) {
    auto* entries = reinterpret_cast<std::uint16_t*>(segment.out + sizeof(Header));
    entries[u.task] = static_cast<std::uint16_t>(words);
    part += weigh(words << (u.task % 2 * 16), sizeof(Header) / 4 + u.task / 2);
    if (u.task + 1 == units) {
      state.extent = s.sum.place + words;
      if (units % 2 != 0) entries[units] = 0;
    }
  }
  return part;
}

/// Copies the unit's words of both payloads into shared memory, if they fit there, and adds them to
/// the thread's parts of the checksums.
template <class T>
__device__ __forceinline__ void load_pair(AddShared<T>& s, const UnitPair& pair,
                                          const UnitPlace (&places)[2],
                                          std::uint32_t (&checksums)[2]) {
  constexpr unsigned threads = Shape<T>::threads;
  const auto load = [&](unsigned k, unsigned first) {
    checksums[k] += load_words<threads>(s.words, pair.at[k], pair.words[k], places[k].at,
                                        [first](unsigned i) { return padded(first + i); });
  };
  if (!pair.stored) {
    load(1, 0);
    __syncthreads();
  }
  load(0, 0);
  if (pair.stored) load(1, pair.words[0]);
  __syncthreads();
}

/// Checks the task's unit of both payloads and adds them. Returns the thread's part of the sum's
/// checksum; `checksums` become those of the summands.
template <class T>
__device__ __forceinline__ std::uint32_t add_task(AddShared<T>& s, const SumSegment& segment,
                                                  SegmentState& state, SumState& sums,
                                                  const Payload (&payloads)[2],
                                                  const bool (&open)[2], EncodingUnit& u,
                                                  std::uint32_t units, Chapter* chapter,
                                                  std::uint32_t (&checksums)[2]) {
  UnitPlace places[2];
  locate_units<T>(s.locate, payloads, open, u.task, units, u.count, chapter, sums, places);
  const UnitPair pair{{payloads[0].words() + places[0].at, payloads[1].words() + places[1].at},
                      {places[0].words, places[1].words},
                      places[0].words + places[1].words <= Shape<T>::words};
  const bool summable =
      open[1] && compare_headers(payloads[0].header, payloads[1].header) == Status::ok;
  load_pair(s, pair, places, checksums);
  if (!summable) return 0;
  Status status = Status::inexact;
  EncodedUnit sum{0, false};
  if (!places[0].raw && !places[1].raw) status = add_unit(s, pair, u, sum);
  if (threadIdx.x == 0) {
    if (status != Status::ok) u.publish(0);
    if (sum.raw) status = Status::inexact;
    if (status != Status::ok) raise(sums, {Stage::sum, u.task, status});
  }
  if (status != Status::ok || sum.raw) return 0;
  return write_sum(s, segment, state, sums, u, sum.words, units);
}

template <class T, unsigned capacity>
__global__ void __launch_bounds__(Shape<T>::threads, sizeof(T) == 4 ? 6 : 8)
    add_units(const __grid_constant__ Batch<capacity, SumSegment> batch, SumWorkspace work) {
  using S = Shape<T>;
  __shared__ AddShared<T> s;
  const Task task = find_task(batch, take_task(work.control));
  const SumSegment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  SumState& sums = work.sums[task.segment];
  const std::uint32_t first_task = batch.first_task[task.segment];
  Chapter* const chapter = work.chapters + first_task / chapter_units;
  const auto units = static_cast<std::uint32_t>(unit_count(Traits<T>::type, segment.count));
  Payload payloads[2];
  bool open[2];
#pragma unroll
  for (unsigned k = 0; k < 2; ++k) {
    open[k] = open_payload<T>(segment.from[k], segment.count, payloads[k]) == Status::ok;
  }
  open[1] &= open[0];  // nobody asks any more
  std::uint32_t checksums[2] = {0, 0};
  if (threadIdx.x == 0) {
    for (unsigned k = 0; k < 2; ++k) {
      if (open[k]) checksums[k] = weigh_front(payloads[k], task.index, units);
    }
  }
  std::uint32_t part = 0;
  if (open[0] && task.index < units) {
    const std::uint64_t done = std::uint64_t{task.index} * S::elements;
    EncodingUnit u{};
    u.words = s.words;
    u.slots = work.slots + first_task;
    u.task = task.index;
    u.last = true;
    u.count = static_cast<std::uint32_t>(min(segment.count - done, std::uint64_t{S::elements}));
    u.blocks = (u.count + block_elements - 1) / block_elements;
    u.dense = payloads[0].header.mode == Mode::dense || payloads[1].header.mode == Mode::dense;
    part = add_task(s, segment, state, sums, payloads, open, u, units, chapter, checksums);
  }
#pragma unroll
  for (unsigned k = 0; k < 2; ++k) {
    const std::uint32_t total = warp_sum(checksums[k]);
    if (threadIdx.x % 32 == 0) s.checksums[threadIdx.x / 32][k] = total;
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    std::uint32_t total = 0;
    for (unsigned w = 0; w < S::warps; ++w) total += s.checksums[w][threadIdx.x];
    atomicAdd(&sums.checksums[threadIdx.x], total);
  }
  if (!is_last_task(state, task.tasks, part)) return;
  if (threadIdx.x == 0) {
    std::uint64_t bytes;
    const Status status = finish_sum<T>(segment, state, sums, bytes);
    report(segment.result, bytes, status, sequence_of(work.control));
    sums = {};
  }
  for (std::uint32_t i = 1 + threadIdx.x; i * chapter_units < units; i += S::threads) {
    chapter[i] = {};
  }
  __syncthreads();
  end_segment(batch, work, task.segment, true, false);
}

template <class T>
cudaError_t add_elements(std::span<const AddSegment> segments, void* workspace,
                         cudaStream_t stream) {
  const auto tasks = [](std::size_t count) {
    return std::max<std::size_t>(1, unit_count(Traits<T>::type, count));
  };
  const auto launch = [&](const auto& batch) {
    const unsigned total = batch.first_task[batch.count];
    const SumWorkspace work = sum_workspace_of(workspace, batch.count, total);
    add_units<T><<<total, Shape<T>::threads, 0, stream>>>(batch, work);
  };
  return codec::cuda::for_each_batch(segments, tasks, launch);
}

}  // namespace

cudaError_t add(ElementType type, std::span<const AddSegment> segments, void* workspace,
                cudaStream_t stream) {
  return type == ElementType::f32 ? add_elements<float>(segments, workspace, stream)
                                  : add_elements<double>(segments, workspace, stream);
}

}  // namespace mpress::codec::szp::cuda
