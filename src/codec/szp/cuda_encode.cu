// szp's CUDA encoder: a thread block takes a task of one unit or two. Tasks are placed by decoupled
// look-back, and two units cost one look and one end.
#include <cuda_pipeline_primitives.h>

#include "codec/cuda/launch.cuh"
#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_add.cuh"
#include "codec/szp/cuda_plan.cuh"
#include "codec/szp/cuda_quantize.cuh"
#include "codec/szp/cuda_range.cuh"

namespace mpress::codec::szp::cuda {
namespace {

/// Begins to copy the unit's elements into rows; past its end the last element repeats.
template <class T>
__device__ void load_unit(const EncodingUnit& u) {
  using S = Shape<T>;
  if (u.count == S::elements && reinterpret_cast<std::uintptr_t>(u.elements) % 16 == 0) {
#pragma unroll
    for (unsigned k = 0; k < S::words / 4 / S::threads; ++k) {
      const unsigned chunk = threadIdx.x + k * S::threads;
      __pipeline_memcpy_async(u.words + chunk_at<T>(chunk), u.elements + 16 * chunk, 16);
    }
  } else {
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < u.blocks * block_elements; i += S::threads) {
      const unsigned from = i < u.count ? i : u.count - 1;
      __pipeline_memcpy_async(u.words + element_at<T>(i * S::element_words),
                              u.elements + from * sizeof(T), sizeof(T));
    }
  }
}

/// Quantises the thread's block and the three elements before it. False where one is strange.
template <class T>
__device__ __forceinline__ bool quantize_block(const Quantizer<T>& z, const std::uint32_t* rows,
                                               std::int32_t (&q)[32], std::int32_t (&before)[3]) {
  std::uint32_t strange = 0;
  const T* row = row_of<T>(rows, threadIdx.x);
  constexpr unsigned chunk = 16 / sizeof(T);
#pragma unroll
  for (unsigned i = 0; i < 32; i += chunk) {
    alignas(16) T x[chunk];
    *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(row + i);
#pragma unroll
    for (unsigned k = 0; k < chunk; ++k) q[i + k] = quantize_fast(z, x[k], strange);
  }
  before[0] = before[1] = before[2] = q[0];
  if (threadIdx.x > 0) {
    std::uint32_t ignored = 0;  // it is strange in its own block, too
    const T* end = row_of<T>(rows, threadIdx.x - 1) + 32;
#pragma unroll
    for (unsigned i = 0; i < 3; ++i) before[i] = quantize_fast(z, *(end - 1 - i), ignored);
  }
  return strange == 0;
}

/// Whether the block may hold something exceptional, or may need more than 32 bits. `lo`, `hi`: the
/// least and greatest of `q`.
template <class T>
__device__ __forceinline__ bool doubtful(const Quantizer<T>& z, const std::uint32_t* rows,
                                         const std::int32_t (&q)[32], std::int32_t lo,
                                         std::int32_t hi) {
  using R = Rounding<T>;
  if (lo >= R::zero - R::reach && hi <= R::zero + R::reach && z.step <= longest_step<T>) {
    return false;
  }
  if constexpr (sizeof(T) == 4) {
    constexpr auto most = static_cast<std::int32_t>(Traits<T>::max_quantum);
    bool missed = lo <= R::zero - most || hi >= R::zero + most;
    const T* row = row_of<T>(rows, threadIdx.x);
#pragma unroll
    for (unsigned i = 0; i < 32; i += 4) {
      alignas(16) T x[4];
      *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(row + i);
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const T error = x[k] - (__int_as_float(q[i + k]) - R::magic) * z.step;
        missed |= !(fabs(error) < z.limit);
      }
    }
    return missed;
  }
  return true;
}

/// The same by the rules, with exceptions. `wide`: quanta need 64 bits. Returns the mask of the
/// block's exceptional elements.
template <class T, class I>
__device__ std::uint32_t quantize_exactly(EncodeShared<T>& s, const Quantizer<T>& z,
                                          const EncodingUnit& u, I (&q)[32], I (&before)[3],
                                          bool& wide) {
  using Quantum = typename Traits<T>::Quantum;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const bool active = threadIdx.x < u.blocks;
  const T* row = row_of<T>(u.words, threadIdx.x);
  std::uint32_t mask = 0;
  I last = 0;
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    Quantum quantum = 0;
    const bool kept = active && quantize(z, row[i], quantum);
    if (kept) {
      last = static_cast<I>(quantum);
      wide |= quantum < -narrow_limit || quantum >= narrow_limit;
    } else {
      mask |= 1u << i;
    }
    q[i] = static_cast<I>(quantum);
  }
  // An exceptional element repeats the quantum before it, wherever that is.
  const std::uint32_t resolved = __ballot_sync(~0u, mask != ~0u);
  const I warp_last = __shfl_sync(~0u, last, resolved == 0 ? 0 : 31 - __clz(resolved));
  __syncthreads();
  if (lane == 0) {
    s.resolved[warp] = resolved != 0;
    s.tails[warp][0] = warp_last;
  }
  __syncthreads();
  I repeated = 0;
  for (unsigned w = 0; w < warp; ++w) {
    if (s.resolved[w] != 0) repeated = static_cast<I>(s.tails[w][0]);
  }
  const std::uint32_t nearer = resolved & lane_mask_below();
  const I near = __shfl_sync(~0u, last, nearer == 0 ? 0 : 31 - __clz(nearer));
  if (nearer != 0) repeated = near;
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1) != 0) q[i] = repeated;
    repeated = q[i];
  }
  __syncthreads();
  quanta_before(s, q, before);
  return active ? mask : 0;
}

/// A unit whose quanta take 64 bits. Elements are still in u.words.
__device__ __noinline__ EncodedUnit encode_wide(EncodeShared<double>& s, const Quantizer<double>& z,
                                                const EncodingUnit& u) {
  std::int64_t q[32], before[3];
  bool wide = false;
  const std::uint32_t mask = quantize_exactly(s, z, u, q, before, wide);
  const Extent<std::int64_t> e = analyse(q, before, u.dense);
  share_range(s, u, q[0], e);
  const bool exceptional = __syncthreads_or(mask != 0);
  return pack_unit(s, u, q, before, {}, e, exceptional, mask);
}

template <class T>
__device__ EncodedUnit encode_unit(EncodeShared<T>& s, const Quantizer<T>& z,
                                   const EncodingUnit& u) {
  std::int32_t q[32], before[3];
  bool sure = quantize_block(z, u.words, q, before);
  std::int32_t zero = Rounding<T>::zero;
  bool exact = false;
  bool exceptional = false;
  std::uint32_t mask = 0;
  Extent<std::int32_t> e;
  for (;;) {
    e = analyse(q, before, u.dense);
    const bool active = threadIdx.x < u.blocks;
    if (sure && active && !exact) sure = !doubtful(z, u.words, q, e.lo[0], e.hi[0]);
    e.lo[0] -= zero;
    e.hi[0] -= zero;
    share_range(s, u, q[0] - zero, e);
    if (__syncthreads_or(!sure && active && !exact) == 0) break;
    bool wide = false;
    mask = quantize_exactly(s, z, u, q, before, wide);
    if constexpr (sizeof(T) == 8) {
      if (__syncthreads_or(wide) != 0) return encode_wide(s, z, u);
    }
    exceptional = __syncthreads_or(mask != 0) != 0;
    exact = true;
    zero = 0;
  }
  return pack_unit(s, u, q, before, zero, e, exceptional, mask);
}

/// What becomes of a segment: the header's part of its payload.
template <class T>
__device__ bool finish_payload(const Segment& segment, const SegmentState& state,
                               std::uint32_t units, bool resolvable, Mode mode, double step,
                               double bound, std::uint64_t& bytes) {
  const auto* fields = reinterpret_cast<const volatile std::uint32_t*>(&state);
  const std::uint64_t extent = *const_cast<const volatile std::uint64_t*>(&state.extent);
  const std::uint64_t most = sizeof(Header) + segment.count * sizeof(T);
  bytes = sizeof(Header) + directory_bytes(units) + 4 * extent;
  const bool raw = !resolvable || bytes >= most;
  const Header header{format_version, Traits<T>::type, mode, raw, 0,
                      segment.count,  raw ? 0 : step,  bound};
  std::uint32_t words[sizeof(Header) / 4];
  memcpy(words, &header, sizeof header);
  std::uint32_t sum = fields[1];
  for (unsigned i = 0; i < sizeof(Header) / 4; ++i) sum += weigh(words[i], i);
  if (!raw) words[1] = sum;
  auto* out = reinterpret_cast<std::uint32_t*>(segment.out);
  for (unsigned i = 0; i < sizeof(Header) / 4; ++i) out[i] = words[i];
  if (!raw && units % 2 != 0) {
    reinterpret_cast<std::uint16_t*>(segment.out + sizeof(Header))[units] = 0;
  }
  return raw;
}

/// Raw payloads: the encoder has written the header, its checksum is missing.
struct RawForm {
  std::size_t elements_at;
  unsigned element_bytes;

  __device__ std::uint64_t close(const Segment& segment, std::uint32_t checksum) const {
    auto* words = reinterpret_cast<std::uint32_t*>(segment.out);
    for (unsigned i = 0; i < sizeof(Header) / 4; ++i) {
      if (i != 1) checksum += weigh(words[i], i);
    }
    words[1] = checksum;
    return elements_at + segment.count * element_bytes;
  }
};

/// What a call's units are quantised with: `absolute`, or by their segment's range.
template <class T>
struct Request {
  Quantizer<T> absolute;
  bool resolvable;
  Bound kind;
  Mode mode;
  bool common;  ///< of all segments
  double value;
  std::uint32_t wave;  ///< units that are encoded at once
};

/// Thread blocks a multiprocessor: as many as its shared memory has room for, less one. More wait
/// for each other longer.
inline constexpr unsigned encode_residency = 5;

/// The units of a task: the first tasks of a segment have two, the others one.
struct UnitRun {
  std::uint32_t first;
  std::uint32_t count;
};
inline constexpr unsigned longest_run = 2;

__device__ inline UnitRun run_of(const Task& task, std::uint32_t units) {
  if (units == 0) return {0, 0};
  const std::uint32_t pairs = units - task.tasks;
  return task.index < pairs ? UnitRun{task.index * 2, 2} : UnitRun{task.index + pairs, 1};
}

/// How many tasks of a call of `units` units have two, where `wave` tasks run at once: all but in
/// the last wave, which is as full as it can be.
inline std::size_t pairs_of(std::size_t units, std::size_t wave) {
  const std::size_t full = units / (2 * wave) * wave;
  const std::size_t rest = units - 2 * full;
  return full + (rest > wave ? rest - wave : 0);
}

/// Writes a unit's words, from word `first` of the payload on if there is room, and its directory
/// entry. Returns the thread's part of the checksum.
template <class T>
__device__ __forceinline__ std::uint32_t write_unit(const Segment& segment, const EncodingUnit& u,
                                                    std::uint32_t unit, const EncodedUnit& encoded,
                                                    std::uint64_t first) {
  using S = Shape<T>;
  std::uint32_t sum = 0;
  const std::uint64_t most = sizeof(Header) / 4 + segment.count * S::element_words;
  auto* out = reinterpret_cast<std::uint32_t*>(segment.out) + first;
  if (first + encoded.words <= most) {
    // From one word of a thread to its next, weight and place change by as much every time.
    constexpr std::uint32_t to_next = checksum_weight(S::threads) - 1;
    constexpr unsigned batch = 4;
    std::uint32_t weight = checksum_weight(static_cast<std::uint32_t>(first) + threadIdx.x);
    const auto copy = [&](const std::uint32_t* from, unsigned stride) {
      std::uint32_t* to = out + threadIdx.x;
#pragma unroll 1
      for (unsigned i = threadIdx.x; i < encoded.words; i += batch * S::threads) {
        std::uint32_t word[batch];
#pragma unroll
        for (unsigned k = 0; k < batch; ++k) {
          word[k] = i + k * S::threads < encoded.words ? from[k * stride] : 0;
        }
#pragma unroll
        for (unsigned k = 0; k < batch; ++k) {
          if (i + k * S::threads < encoded.words) to[k * S::threads] = word[k];
          sum += word[k] * (weight + k * to_next);
        }
        weight += batch * to_next;
        from += batch * stride;
        to += batch * S::threads;
      }
    };
    if (encoded.raw) {
      copy(reinterpret_cast<const std::uint32_t*>(u.elements) + threadIdx.x, S::threads);
    } else {
      copy(u.words + padded(threadIdx.x), padded(S::threads));
    }
  }
  if (threadIdx.x == 0) {
    const auto entry = static_cast<std::uint16_t>(encoded.raw ? raw_unit : encoded.words);
    reinterpret_cast<std::uint16_t*>(segment.out + sizeof(Header))[unit] = entry;
    sum += weigh(std::uint32_t{entry} << (unit % 2 * 16), sizeof(Header) / 4 + unit / 2);
  }
  return sum;
}

template <class T, unsigned capacity>
__global__ void __launch_bounds__(Shape<T>::threads, encode_residency)
    encode_units(const __grid_constant__ Batch<capacity> batch, Workspace work, RangeKeys* ranges,
                 Request<T> request) {
  using S = Shape<T>;
  __shared__ EncodeShared<T> s;
  __shared__ alignas(16) std::uint32_t words[longest_run][S::buffer];
  __shared__ Quantizer<T> quantizer;
  __shared__ double bound;
  __shared__ bool resolvable;
  const std::uint32_t number = take_task(work.control);
  const Task task = find_task(batch, number);
  const Segment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  const auto units = static_cast<std::uint32_t>(unit_count(Traits<T>::type, segment.count));
  const UnitRun run = run_of(task, units);
  const auto unit_at = [&](unsigned k) {
    const std::uint64_t first = std::uint64_t{run.first + k} * S::elements;
    EncodingUnit u;
    u.elements = segment.in + first * sizeof(T);
    u.words = words[k];
    u.slots = work.slots + batch.first_task[task.segment];
    u.task = task.index;
    u.before = 0;
    u.last = k + 1 == run.count;
    u.count = static_cast<std::uint32_t>(min(segment.count - first, std::uint64_t{S::elements}));
    u.blocks = (u.count + block_elements - 1) / block_elements;
    u.dense = request.mode == Mode::dense;
    return u;
  };
#pragma unroll
  for (unsigned k = 0; k < longest_run; ++k) {
    if (k < run.count) load_unit<T>(unit_at(k));
    __pipeline_commit();
  }
  // What a thread block of the next wave will load.
  const std::uint32_t later = number + request.wave;
  if (later < batch.first_task[batch.count]) {
    const Task next = find_task(batch, later);
    const Segment& from = batch.segments[next.segment];
    const UnitRun units_of_next =
        run_of(next, static_cast<std::uint32_t>(unit_count(Traits<T>::type, from.count)));
    for (unsigned k = 0; k < units_of_next.count; ++k) {
      prefetch_unit<T>(from.in, from.count, units_of_next.first + k);
    }
  }
  if (threadIdx.x == 0) {
    if (request.kind == Bound::rel) {
      codec::cuda::wait_for_previous();
      const Grid grid =
          grid_within<T>(request.value, ranges[request.common ? 0 : task.segment]);
      bound = grid.bound;
      resolvable = make_quantizer(grid, quantizer);
    } else {
      bound = request.value;
      quantizer = request.absolute;
      resolvable = request.resolvable;
    }
  }
  __pipeline_wait_prior(longest_run - 1);
  __syncthreads();
  std::uint32_t sum = 0;
  if (resolvable && run.count != 0) {
    EncodedUnit encoded[longest_run] = {};
    std::uint32_t total = 0;
#pragma unroll 1  // registers would not suffice
    for (unsigned k = 0; k < run.count; ++k) {
      if (k > 0) {
        __pipeline_wait_prior(0);
        __syncthreads();
      }
      EncodingUnit u = unit_at(k);
      u.before = total;
      const EncodedUnit unit = encode_unit(s, quantizer, u);
      total += unit.words;
      (k == 0 ? encoded[0] : encoded[1]) = unit;
    }
    if (threadIdx.x < 32) {
      const std::uint64_t place =
          look_back(work.slots + batch.first_task[task.segment], task.index, total);
      if (threadIdx.x == 0) s.place = place;
    }
    __syncthreads();
    std::uint64_t at = (sizeof(Header) + directory_bytes(units)) / 4 + s.place;
#pragma unroll
    for (unsigned k = 0; k < longest_run; ++k) {
      if (k < run.count) sum += write_unit<T>(segment, unit_at(k), run.first + k, encoded[k], at);
      at += encoded[k].words;
    }
    if (threadIdx.x == 0 && run.first + run.count == units) state.extent = s.place + total;
  }
  if (!is_last_task(state, task.tasks, sum)) return;
  __shared__ bool kept_raw;
  if (threadIdx.x == 0) {
    std::uint64_t bytes = 0;
    kept_raw = finish_payload<T>(segment, state, units, resolvable, request.mode, quantizer.step,
                                 bound, bytes);
    if (!kept_raw) report(segment.result, bytes, Status::ok, sequence_of(work.control));
    if (request.kind == Bound::rel && !request.common) ranges[task.segment] = {};
  }
  __syncthreads();
  end_segment(batch, work, task.segment, true, kept_raw);
}

template <class T, unsigned capacity>
auto kernel_of(const Batch<capacity>&) {
  return encode_units<T, capacity>;
}

template <class T>
cudaError_t encode_elements(Bound kind, const Grid& value, Mode mode,
                            std::span<const EncodeSegment> segments, void* workspace,
                            cudaStream_t stream, RangeOf range,
                            std::span<const mpress::Extent> extents) {
  const bool given = kind == Bound::rel && range == RangeOf::given;
  const bool found = kind == Bound::rel && range == RangeOf::call && segments.size() > 1;
  const bool common = given || found;
  if (given && extents.empty()) return cudaErrorInvalidValue;
  if (found && segments.size() > max_common_range) return cudaErrorInvalidValue;
  Request<T> request{{},   false,  kind,
                     mode, common, value.bound,
                     codec::cuda::multiprocessors() * encode_residency};
  if (kind == Bound::abs) request.resolvable = quantizer_of(value, request.absolute);
  std::size_t units = 0;
  for (const EncodeSegment& segment : segments) units += unit_count(Traits<T>::type, segment.count);
  std::size_t pairs_left = pairs_of(units, request.wave);
  const auto tasks = [&](std::size_t count) {
    const std::size_t mine = unit_count(Traits<T>::type, count);
    const std::size_t pairs = std::min(mine / 2, pairs_left);
    pairs_left -= pairs;
    return std::max<std::size_t>(1, mine - pairs);
  };
  const auto launch = [&](const auto& batch) {
    Workspace work = codec::cuda::workspace_of(workspace, batch.count);
    auto* ranges = reinterpret_cast<RangeKeys*>(work.slots);
    work.slots = reinterpret_cast<std::uint64_t*>(ranges + batch.count);
    const unsigned total = batch.first_task[batch.count];
    codec::cuda::Launch encode(total, Shape<T>::threads, stream);
    if (given) {
      codec::cuda::Launch join(1, 1, stream);
      join.prefer_shared_memory();
      join(join_extents<T>, extents.data(), static_cast<std::uint32_t>(extents.size()), ranges);
      encode.begin_early();
    } else if (kind == Bound::rel && launch_find_ranges<T>(batch, ranges, common, stream)) {
      encode.begin_early();
    }
    encode(kernel_of<T>(batch), batch, work, ranges, request);
    codec::cuda::launch_copy_raw(batch, work, RawForm{sizeof(Header), sizeof(T)}, Traits<T>::type,
                                 stream);
    if (common) cudaMemsetAsync(ranges, 0, sizeof *ranges, stream);
  };
  return codec::cuda::for_each_batch(segments, tasks, launch);
}

}  // namespace

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments) {
  const std::size_t tasks = count / unit_elements(type) + segments;
  const std::size_t ranges = std::min<std::size_t>(segments, codec::cuda::max_batch);
  return codec::cuda::workspace_bytes(tasks, segments) +
         std::max(ranges * sizeof(RangeKeys), sum_workspace_bytes(tasks, segments));
}

cudaError_t encode(ElementType type, Bound bound, const Grid& value, Mode mode,
                   std::span<const EncodeSegment> segments, void* workspace, cudaStream_t stream,
                   RangeOf range, std::span<const mpress::Extent> extents) {
  return type == ElementType::f32 ? encode_elements<float>(bound, value, mode, segments, workspace,
                                                           stream, range, extents)
                                  : encode_elements<double>(bound, value, mode, segments, workspace,
                                                            stream, range, extents);
}

}  // namespace mpress::codec::szp::cuda
