// szp's sums on a GPU: a thread block a unit, as in the encoder. Quanta of all summands are added
// up in shared memory and packed again.
#include <cuda_pipeline.h>

#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_add.cuh"
#include "codec/szp/cuda_plan.cuh"
#include "codec/szp/cuda_quantize.cuh"
#include "codec/szp/cuda_unpack.cuh"

namespace mpress::codec::szp::cuda {
namespace {

template <class T>
struct AddShared {
  alignas(16) std::uint32_t words[Shape<T>::buffer];  ///< of summands, then those of their sum
  EncodeShared<T> sum;
  alignas(16) std::uint32_t sums[Shape<T>::threads][block_elements + 4];  ///< of 32 bits
  UnpackShared<T> unpack;
  SummandsShared<T> summands;
};

/// The summands' units, as far as they lie in shared memory: from one on, as many as find room.
/// Their words come there one behind the other.
template <class T>
class LoadedUnits {
 public:
  /// `elements`: a bit for each summand that is none of payloads.
  __device__ LoadedUnits(AddShared<T>& s, unsigned summands, std::uint32_t elements)
      : s_(s), summands_(summands), elements_(elements) {}

  /// The next summand's. Called by all threads of the block, in turn for each summand.
  __device__ __forceinline__ StoredUnit next() {
    if (next_ == end_) load();
    const unsigned first = at_;
    at_ += s_.summands.places[next_++].words;
    return {s_.words, first, at_};
  }

  /// Are the next one's elements?
  __device__ bool are_elements() const { return (elements_ >> next_ & 1) != 0; }

  /// Begins with the first summand again.
  __device__ void rewind() { next_ = end_ = 0; }

  /// Loads those of which no checksum is known yet.
  __device__ void weigh_rest() {
    while (weighed_ < summands_) {
      end_ = weighed_;
      load();
    }
  }

 private:
  /// Barriers are before and behind it. All that find room are on their way at once.
  __device__ void load() {
    constexpr unsigned threads = Shape<T>::threads;
    const UnitPlace* const places = s_.summands.places;
    const unsigned begin = end_;
    unsigned total = 0;
    do {
      total += places[end_++].words;
    } while (end_ < summands_ && total + places[end_].words <= Shape<T>::words &&
             (elements_ >> begin & 1) == 0 && (elements_ >> end_ & 1) == 0);
    __syncthreads();
    if ((elements_ >> begin & 1) != 0) return load_elements(begin);
    unsigned first = 0;
    for (unsigned k = begin; k < end_; ++k) {
      const std::uint32_t* const from = s_.summands.payloads[k].words() + places[k].at;
      for (unsigned i = threadIdx.x; i < places[k].words; i += threads) {
        __pipeline_memcpy_async(&s_.words[padded(first + i)], from + i, 4);
      }
      first += places[k].words;
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    first = 0;
    for (unsigned k = begin; k < end_; ++k) {
      if (k >= weighed_) {  // its own words each thread sees without a barrier
        std::uint32_t sum = 0;
        for (unsigned i = threadIdx.x; i < places[k].words; i += threads) {
          sum += weigh(s_.words[padded(first + i)], places[k].at + i);
        }
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0) s_.summands.checksums[threadIdx.x / 32][k] = sum;
      }
      first += places[k].words;
    }
    weighed_ = max(weighed_, end_);
    at_ = 0;
    __syncthreads();
  }

  /// Those of a unit, which come alone, into rows. A barrier is behind it.
  __device__ void load_elements(unsigned k) {
    using S = Shape<T>;
    const UnitPlace& place = s_.summands.places[k];
    const std::uint32_t* const from = s_.summands.payloads[k].words() + place.at;
    if (place.words == S::words && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
#pragma unroll
      for (unsigned i = 0; i < S::words / 4 / S::threads; ++i) {
        const unsigned chunk = threadIdx.x + i * S::threads;
        __pipeline_memcpy_async(s_.words + chunk_at<T>(chunk), from + 4 * chunk, 16);
      }
    } else {
      for (unsigned i = threadIdx.x; i < place.words; i += S::threads) {
        __pipeline_memcpy_async(s_.words + element_at<T>(i), from + i, 4);
      }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    weighed_ = max(weighed_, end_);
    at_ = 0;
    __syncthreads();
  }

  AddShared<T>& s_;
  const unsigned summands_;
  const std::uint32_t elements_;
  unsigned next_ = 0, end_ = 0;
  unsigned at_ = 0;       ///< of the next one's words
  unsigned weighed_ = 0;  ///< summands whose checksums are known
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

/// The quanta of the thread's block of elements, which lie in rows; past their end 0. `wide`: I
/// does not hold them.
template <class T, class I>
__device__ __forceinline__ Status quantize_summand(const Quantizer<T>& z, const StoredUnit& unit,
                                                   const EncodingUnit& u, I (&q)[32], bool& wide) {
  constexpr unsigned chunk = 16 / sizeof(T);
  const unsigned first = threadIdx.x * block_elements;
  const T* const row = row_of<T>(unit.words, threadIdx.x);
  bool is_kept = true, is_wide_one = false;
  const auto each = [&](auto quantize_one) {
#pragma unroll
    for (unsigned i = 0; i < 32; i += chunk) {
      alignas(16) T x[chunk];
      *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(row + i);
#pragma unroll
      for (unsigned k = 0; k < chunk; ++k) {
        if (first + i + k < u.count) q[i + k] = quantize_one(x[k]);
      }
    }
  };
  bool is_exact = sizeof(T) == 8;
  if constexpr (sizeof(T) == 4) {
    using R = Rounding<T>;
    std::int32_t lo = 0, hi = 0;
    std::uint32_t ignored = 0;  // NaNs show as quanta far away
    each([&](T x) {
      const std::int32_t quantum = quantize_fast(z, x, ignored) - R::zero;
      lo = min(lo, quantum);
      hi = max(hi, quantum);
      return quantum;
    });
    is_exact = lo < -R::reach || hi > R::reach || z.step > longest_step<T>;
  }
  if (is_exact && first < u.count) {
    each([&](T x) {
      typename Traits<T>::Quantum quantum = 0;
      is_kept &= quantize(z, x, quantum);
      if constexpr (sizeof(I) < sizeof(quantum)) {
        is_wide_one |= quantum < -narrow_limit || quantum >= narrow_limit;
      }
      return static_cast<I>(quantum);
    });
  }
  if (__syncthreads_or(!is_kept) != 0) return Status::inexact;
  if constexpr (sizeof(I) < sizeof(T)) {
    if (__syncthreads_or(is_wide_one) != 0) {
      wide = true;
      return Status::inexact;
    }
  }
  return Status::ok;
}

/// The sum's elements, as the decoder has them. Called by all threads of the block, between two
/// barriers; s.words are free before and behind it.
template <class T, class I>
__device__ __forceinline__ void write_decoded(AddShared<T>& s, T step, const EncodingUnit& u,
                                              const I (&q)[32], T* decoded) {
  constexpr unsigned chunk = 16 / sizeof(T);
  auto* row = reinterpret_cast<T*>(s.words + threadIdx.x * Shape<T>::row);
#pragma unroll
  for (unsigned i = 0; i < 32; i += chunk) {
    alignas(16) T x[chunk];
#pragma unroll
    for (unsigned k = 0; k < chunk; ++k) x[k] = static_cast<T>(q[i + k]) * step;
    *reinterpret_cast<uint4*>(row + i) = *reinterpret_cast<const uint4*>(x);
  }
  __syncthreads();
  if (u.count == Shape<T>::elements && reinterpret_cast<std::uintptr_t>(decoded) % 16 == 0) {
#pragma unroll
    for (unsigned k = 0; k < Shape<T>::words / 4 / Shape<T>::threads; ++k) {
      const unsigned at = threadIdx.x + k * Shape<T>::threads;
      reinterpret_cast<uint4*>(decoded)[at] =
          *reinterpret_cast<const uint4*>(s.words + chunk_at<T>(at));
    }
  } else {
    for (unsigned i = threadIdx.x; i < u.count; i += Shape<T>::threads) {
      decoded[i] =
          *reinterpret_cast<const T*>(s.words + element_at<T>(i * Shape<T>::element_words));
    }
  }
  __syncthreads();
}

/// Sums of the quanta of the thread's block, while registers hold those of a summand.
template <class T, class I>
struct KeptSums {
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
struct KeptSums<T, std::int32_t> {
  __device__ __forceinline__ void keep(AddShared<T>& s, const std::int32_t (&q)[32]) {
    auto* row = reinterpret_cast<int4*>(s.sums[threadIdx.x]);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      row[i] = {q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]};
    }
  }
  __device__ __forceinline__ void add_to(const AddShared<T>& s, std::int32_t (&q)[32]) const {
    const auto* row = reinterpret_cast<const int4*>(s.sums[threadIdx.x]);
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
/// Sums of most_summands quanta within the reach overflow nothing. `wide`: they are to be added in
/// 64 bits instead, whatever the status. A barrier is behind all.
template <class T, class I>
__device__ __forceinline__ Status sum_quanta(AddShared<T>& s, LoadedUnits<T>& units,
                                             unsigned summands, const Quantizer<T>& z,
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
  // Registers do not hold two summands' quanta.
  KeptSums<T, I> sums;
#pragma unroll 1
  for (unsigned k = 0; k < summands; ++k) {
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) q[i] = 0;
    const bool are_elements = units.are_elements();
    const StoredUnit unit = units.next();
    if (unit.first != unit.end) {
      const Status status = are_elements ? quantize_summand(z, unit, u, q, wide)
                                         : unpack_summand(s.unpack, unit, u.blocks, q, wide);
      if (status != Status::ok) return beyond() ? Status::inexact : status;
#pragma unroll
      for (unsigned i = 0; i < 32; i += 2) extend(lo, hi, q[i], q[i + 1]);
    }
    if (k != 0) sums.add_to(s, q);
    if (k + 1 != summands) sums.keep(s, q);
  }
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
__device__ __noinline__ Status add_wide(AddShared<double>& s, LoadedUnits<double>& units,
                                        unsigned summands, const Quantizer<double>& z,
                                        const EncodingUnit& u, double* decoded, EncodedUnit& sum) {
  std::int64_t q[32], before[3];
  Extent<std::int64_t> e;
  bool ignored = false;
  units.rewind();
  const Status status = sum_quanta(s, units, summands, z, u, q, before, e, ignored);
  if (status != Status::ok) return status;
  if (decoded != nullptr) write_decoded(s, z.step, u, q, decoded);
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
__device__ __forceinline__ Status add_unit(AddShared<T>& s, LoadedUnits<T>& units,
                                           unsigned summands, const Quantizer<T>& z,
                                           const EncodingUnit& u, T* decoded, EncodedUnit& sum) {
  std::int32_t q[32], before[3];
  Extent<std::int32_t> e;
  bool wide = false;
  const Status status = sum_quanta(s, units, summands, z, u, q, before, e, wide);
  if constexpr (sizeof(T) == 8) {
    if (wide) return add_wide(s, units, summands, z, u, decoded, sum);
  }
  if (status == Status::ok && decoded != nullptr) write_decoded(s, z.step, u, q, decoded);
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
    if (threadIdx.x == 0) raise(sums, {sum_stage, u.task, Status::inexact});
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

/// Checks the task's unit of all payloads and adds them; their checksums are in `s` then. Returns
/// the thread's part of the sum's. `open`: payloads before the first that is not sound.
template <class T>
__device__ __forceinline__ std::uint32_t add_task(AddShared<T>& s, const SumSegment& segment,
                                                  SegmentState& state, SumState& sums,
                                                  unsigned open, Quantizer<T> z, EncodingUnit& u,
                                                  std::uint32_t units, Chapter* chapter) {
  locate_units<T>(s.summands, open, segment.elements, u.task, units, u.count, chapter, sums);
  LoadedUnits<T> loaded(s, open, segment.elements);
  z.step = static_cast<T>(s.summands.payloads[0].header.step);
  auto* decoded = reinterpret_cast<T*>(segment.decoded);
  if (decoded != nullptr) decoded += std::size_t{u.task} * Shape<T>::elements;
  bool summable = open == segment.summands;
  bool raw = false, any = false;
  for (unsigned k = 0; k < open; ++k) {
    const Payload* const payloads = s.summands.payloads;
    summable &= compare(payloads[0].header, payloads[k].header) == Status::ok;
    raw |= s.summands.places[k].raw;
    any |= s.summands.places[k].words != 0;
  }
  if (!summable) {
    loaded.weigh_rest();
    return 0;
  }
  Status status = raw ? Status::inexact : Status::ok;
  EncodedUnit sum{0, false};
  if (status == Status::ok && any) {
    status = add_unit(s, loaded, open, z, u, decoded, sum);
  } else if (status == Status::ok) {
    if (threadIdx.x == 0) u.publish(0);
    for (unsigned i = threadIdx.x; decoded != nullptr && i < u.count; i += Shape<T>::threads) {
      decoded[i] = 0;
    }
  }
  const bool is_sum = status == Status::ok && !sum.raw;
  if (threadIdx.x == 0) {
    if (status != Status::ok) u.publish(0);
    if (!is_sum) raise(sums, {sum_stage, u.task, sum.raw ? Status::inexact : status});
  }
  if (is_sum && any) return write_sum(s, segment, state, sums, u, sum.words, units);
  loaded.weigh_rest();
  return is_sum ? write_sum(s, segment, state, sums, u, 0, units) : 0;
}

template <class T, unsigned capacity>
__global__ void __launch_bounds__(Shape<T>::threads, sizeof(T) == 4 ? 5 : 7)
    add_units(const __grid_constant__ Batch<capacity, SumSegment> batch, SumWorkspace work,
              const Elements<T> as) {
  using S = Shape<T>;
  __shared__ AddShared<T> s;
  const Task task = find_task(batch, take_task(work.control));
  const SumSegment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  SumState& sums = work.sums[task.segment];
  const std::uint32_t first_task = batch.first_task[task.segment];
  Chapter* const chapter = work.chapters + first_task / chapter_units;
  const auto units = static_cast<std::uint32_t>(unit_count(Traits<T>::type, segment.count));
  for (unsigned i = threadIdx.x; i < S::warps * most_summands; i += S::threads) {
    s.summands.checksums[i / most_summands][i % most_summands] = 0;
  }
  const unsigned open = open_summands(s.summands, segment, as);
  std::uint32_t front = 0;
  if (threadIdx.x < open && (segment.elements >> threadIdx.x & 1) == 0) {
    front = weigh_front(s.summands.payloads[threadIdx.x], task.index, units);
  }
  std::uint32_t part = 0;
  if (open != 0 && task.index < units) {
    const std::uint64_t done = std::uint64_t{task.index} * S::elements;
    EncodingUnit u{};
    u.words = s.words;
    u.slots = work.slots + first_task;
    u.task = task.index;
    u.last = true;
    u.count = static_cast<std::uint32_t>(min(segment.count - done, std::uint64_t{S::elements}));
    u.blocks = (u.count + block_elements - 1) / block_elements;
    for (unsigned k = 0; k < open; ++k)
      u.dense |= s.summands.payloads[k].header.mode == Mode::dense;
    part = add_task(s, segment, state, sums, open, as.z, u, units, chapter);
  }
  __syncthreads();
  if (threadIdx.x < segment.summands) {
    for (unsigned w = 0; w < S::warps; ++w) front += s.summands.checksums[w][threadIdx.x];
    atomicAdd(&sums.checksums[threadIdx.x], front);
  }
  if (!is_last_task(state, task.tasks, part)) return;
  if (threadIdx.x == 0) {
    std::uint64_t bytes;
    const Status status = finish_sum<T>(s.summands, segment, state, sums, bytes);
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
cudaError_t add_elements(std::span<const AddSegment> segments, const EncodedAs& elements,
                         void* workspace, cudaStream_t stream) {
  Elements<T> as{{}, elements.grid.bound, elements.mode};
  if (!quantizer_of(elements.grid, as.z)) as.z.step = 0;
  const auto tasks = [](std::size_t count) {
    return std::max<std::size_t>(1, unit_count(Traits<T>::type, count));
  };
  const auto launch = [&](const auto& batch) {
    const unsigned total = batch.first_task[batch.count];
    const SumWorkspace work = sum_workspace_of(workspace, batch.count, total);
    add_units<T><<<total, Shape<T>::threads, 0, stream>>>(batch, work, as);
  };
  return codec::cuda::for_each_batch(segments, tasks, launch);
}

}  // namespace

cudaError_t add(ElementType type, std::span<const AddSegment> segments, const EncodedAs& elements,
                void* workspace, cudaStream_t stream) {
  return type == ElementType::f32 ? add_elements<float>(segments, elements, workspace, stream)
                                  : add_elements<double>(segments, elements, workspace, stream);
}

}  // namespace mpress::codec::szp::cuda
