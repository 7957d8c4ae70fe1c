// szp's CUDA decoder: a thread block takes runs of units, whose places it sums up by itself.
#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_payload.cuh"
#include "codec/szp/cuda_unpack.cuh"

namespace mpress::codec::szp::cuda {
namespace {

template <class T>
__device__ T combine_values(Combine combine, T have, T value) {
  switch (combine) {
    case Combine::sum: return have + value;
    case Combine::min: return have != have || have < value ? have : value;
    case Combine::max: return have != have || have > value ? have : value;
    case Combine::prod: return have * value;
    default: return value;
  }
}

/// Combines the rows in `rows` with the unit's `count` elements at `out`.
template <class T>
__device__ __forceinline__ void store_unit(const std::uint32_t* rows, unsigned char* out,
                                           unsigned count, Combine combine) {
  using S = Shape<T>;
  if (count == S::elements && reinterpret_cast<std::uintptr_t>(out) % 16 == 0) {
    constexpr unsigned chunks = S::words / 4 / S::threads;
    constexpr unsigned each = 16 / sizeof(T);
    auto* to = reinterpret_cast<uint4*>(out);
    if (combine == Combine::replace) {
#pragma unroll
      for (unsigned k = 0; k < chunks; ++k) {
        const unsigned chunk = threadIdx.x + k * S::threads;
        to[chunk] = *reinterpret_cast<const uint4*>(rows + chunk_at<T>(chunk));
      }
      return;
    }
    uint4 have[8];
#pragma unroll
    for (unsigned part = 0; part < chunks; part += 8) {
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) have[k] = to[threadIdx.x + (part + k) * S::threads];
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        const unsigned chunk = threadIdx.x + (part + k) * S::threads;
        alignas(16) T x[each], y[each];
        *reinterpret_cast<uint4*>(x) = have[k];
        *reinterpret_cast<uint4*>(y) = *reinterpret_cast<const uint4*>(rows + chunk_at<T>(chunk));
#pragma unroll
        for (unsigned i = 0; i < each; ++i) y[i] = combine_values(combine, x[i], y[i]);
        to[chunk] = *reinterpret_cast<const uint4*>(y);
      }
    }
    return;
  }
  auto* to = reinterpret_cast<T*>(out);
  for (unsigned i = threadIdx.x; i < count; i += S::threads) {
    const T value = *reinterpret_cast<const T*>(rows + element_at<T>(i * S::element_words));
    to[i] = combine == Combine::replace ? value : combine_values(combine, to[i], value);
  }
}

/// Words of the units before `unit`, the same for all threads.
template <class T>
__device__ std::uint64_t words_before(const std::uint16_t* directory, std::uint32_t unit) {
  __shared__ unsigned long long total;
  std::uint64_t sum = directory_part<T>(directory, 0, unit);
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
  __syncthreads();
  return total;
}

/// Decodes units [first, end) of a payload. Returns the thread's part of their checksum; sets
/// `failed` as raise_status() has it.
template <class T>
__device__ std::uint32_t decode_run(DecodeShared<T>& s, const Payload& p, const Segment& segment,
                                    SegmentState& state, std::uint32_t first, std::uint32_t end,
                                    std::uint32_t units, Combine combine, bool& failed) {
  using S = Shape<T>;
  const std::uint32_t* words = p.words();
  const std::uint16_t* entries = p.directory();
  const bool raw = p.header.raw != 0;
  std::uint64_t at = sizeof(Header) / 4;
  if (raw) {
    at += std::uint64_t{first} * S::words;
  } else {
    at += directory_bytes(units) / 4 + words_before<T>(entries, first);
  }
  std::uint32_t sum = 0;
  const auto rows = [](unsigned i) { return element_at<T>(i); };
  for (std::uint32_t unit = first; unit < end; ++unit) {
    const std::uint64_t done = std::uint64_t{unit} * S::elements;
    const auto count = static_cast<unsigned>(min(segment.count - done, std::uint64_t{S::elements}));
    const unsigned most = count * S::element_words;
    const std::uint32_t entry = raw ? raw_unit : entries[unit];
    if (!raw && threadIdx.x == 0) {
      sum += weigh(entry << (unit % 2 * 16), sizeof(Header) / 4 + unit / 2);
    }
    const unsigned size = entry == raw_unit ? most : entry;
    if (size > most || at + size > p.bytes / 4) {
      if (threadIdx.x == 0) {
        failed |= raise_status(state, size > most ? Status::corrupt : Status::truncated);
      }
      return sum;
    }
    __syncthreads();
    bool good = true;
    if (entry == raw_unit) {
      sum += load_words<S::threads>(s.words, words + at, size, at, rows);
    } else if (entry == 0) {
      for (unsigned i = threadIdx.x; i < S::buffer / 4; i += S::threads) {
        reinterpret_cast<uint4*>(s.words)[i] = {};
      }
    } else {
      sum += load_words<S::threads>(s.words, words + at, size, at, padded);
      __syncthreads();
      good = unpack_unit(s, static_cast<T>(p.header.step), words + at, size,
                         (count + block_elements - 1) / block_elements);
    }
    __syncthreads();
    if (good) {
      store_unit<T>(s.words, segment.out + done * sizeof(T), count, combine);
    } else if (threadIdx.x == 0) {
      failed |= raise_status(state, Status::corrupt);
    }
    at += size;
  }
  if (end != units || raw) return sum;
  // The units fill the payload exactly.
  if (threadIdx.x == 0) {
    if (at != p.bytes / 4) failed |= raise_status(state, Status::corrupt);
    if (units % 2 != 0) {
      sum += weigh(std::uint32_t{entries[units]} << 16, sizeof(Header) / 4 + units / 2);
    }
  }
  return sum;
}

template <class T, unsigned capacity>
__global__ void __launch_bounds__(Shape<T>::threads, sizeof(T) == 4 ? 8 : 10)
    decode_units(const __grid_constant__ Batch<capacity> batch, Workspace work, std::uint32_t run,
                 Combine combine) {
  __shared__ DecodeShared<T> s;
  const Task task = find_task(batch, blockIdx.x);
  const Segment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  const auto units = static_cast<std::uint32_t>(unit_count(Traits<T>::type, segment.count));
  const std::uint32_t first = task.index * run;
  const std::uint32_t end = min(first + run, units);
  // In larger calls, prefetches only displace what others still need.
  if (run == 1 && !segment.encoded) {
    if (combine != Combine::replace && first < end) {
      prefetch_unit<T>(segment.out, segment.count, first);
    }
    codec::cuda::prefetch_payload(segment.in, segment.bytes, sizeof(Header) + directory_bytes(end),
                                  task);
  }
  // What is needed seldom is kept where it takes no registers.
  __shared__ Payload payload;
  __shared__ Status status;
  __shared__ bool failed;
  if (threadIdx.x == 0) {
    failed = false;
    status = open_payload<T>({segment.in, segment.bytes, segment.encoded}, segment.count, payload);
    if (status == Status::ok && payload.header.raw == 0 &&
        (payload.bytes % 4 != 0 || !step_is_valid<T>(payload.header))) {
      status = Status::corrupt;
    }
  }
  __syncthreads();
  std::uint32_t sum = 0;
  if (status == Status::ok) {
    sum = decode_run<T>(s, payload, segment, state, first, end, units, combine, failed);
    if (task.index == 0 && threadIdx.x < sizeof(Header) / 4 && threadIdx.x != 1) {
      sum += weigh(reinterpret_cast<const std::uint32_t*>(payload.data)[threadIdx.x], threadIdx.x);
    }
  } else if (threadIdx.x == 0) {
    failed = raise_status(state, status);
  }
  // Only the first thread writes it: no other may read it, not even ahead of time.
  bool flag = false;
  if (threadIdx.x == 0) flag = *static_cast<volatile bool*>(&failed);
  const SegmentEnd all = end_tasks(work.control, state, task.tasks, 1, sum, flag);
  if (!all.last) return;
  if (threadIdx.x == 0) {
    const bool sound = all.checksum == payload.header.checksum;
    const Status found = all.status == Status::ok && !sound ? Status::corrupt : all.status;
    report(segment.result, payload.bytes, found, all.sequence);
  }
  end_segment(batch, work, task.segment, false, false);
}

template <class T>
cudaError_t decode_elements(std::span<const DecodeSegment> segments, Combine combine,
                            void* workspace, cudaStream_t stream) {
  std::size_t units = 0;
  for (const DecodeSegment& segment : segments) units += unit_count(Traits<T>::type, segment.count);
  // Enough tasks to fill the device twice.
  const std::size_t enough = std::size_t{codec::cuda::multiprocessors()} * 16;
  const std::size_t run = std::max<std::size_t>(1, units / enough);
  const auto tasks = [&](std::size_t count) {
    return std::max<std::size_t>(1, ceil_div(unit_count(Traits<T>::type, count), run));
  };
  const auto launch = [&](const auto& batch) {
    const Workspace work = codec::cuda::workspace_of(workspace, batch.count);
    decode_units<T><<<batch.first_task[batch.count], Shape<T>::threads, 0, stream>>>(
        batch, work, static_cast<std::uint32_t>(run), combine);
  };
  return codec::cuda::for_each_batch(segments, tasks, launch);
}

}  // namespace

cudaError_t decode(ElementType type, std::span<const DecodeSegment> segments, Combine combine,
                   void* workspace, cudaStream_t stream) {
  return type == ElementType::f32 ? decode_elements<float>(segments, combine, workspace, stream)
                                  : decode_elements<double>(segments, combine, workspace, stream);
}

}  // namespace mpress::codec::szp::cuda
