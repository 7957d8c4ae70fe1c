// Decoding kernel of zfp's CUDA twin.
#pragma once

#include "codec/zfp/cuda_kernel.cuh"

namespace mpress::codec::zfp::cuda {

/// What a payload's size and footer say.
struct Payload {
  Status status;  ///< not ok: the rest means nothing
  bool raw;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint64_t exceptions;
};

template <typename Element>
__device__ Payload inspect(const Segment& segment, unsigned block_bits) {
  constexpr ElementType type = sizeof(Element) == 4 ? ElementType::f32 : ElementType::f64;
  Payload p{Status::ok, false, segment.bytes, stream_bytes(type, segment.count, block_bits), 0};
  if (segment.encoded) {
    const auto* encoded = static_cast<const volatile Result*>(segment.encoded);
    p.bytes = encoded->bytes;
    if (p.bytes > segment.bytes) p.status = Status::truncated;
  }
  const std::uint64_t raw = raw_bytes(type, segment.count);
  if (p.bytes < min(p.stream, raw) + sizeof(Footer)) p.status = Status::truncated;
  if (p.status != Status::ok) return p;
  const std::uint64_t body = p.bytes - sizeof(Footer);
  p.status = Status::corrupt;
  if (body % 8 != 0) return p;
  const auto* footer = reinterpret_cast<const uint2*>(segment.in + body);
  const uint2 count = footer[0];
  const std::uint32_t form = footer[1].x;
  p.exceptions = std::uint64_t{count.y} << 32 | count.x;
  p.raw = form == kFormRaw;
  if (p.raw) {
    if (body != raw || p.exceptions != 0) return p;
  } else {
    if (form != kFormStream || body < p.stream) return p;
    const std::uint64_t records = body - p.stream;
    if (records / exception_bytes(type) != p.exceptions || records % exception_bytes(type) != 0) {
      return p;
    }
  }
  p.status = Status::ok;
  return p;
}

/// The exceptions of a payload.
template <typename Element>
struct Exceptions {
  static constexpr unsigned words = sizeof(Element) + 2;  // of a record
  const std::uint32_t* records;
  std::uint64_t count;

  __device__ std::uint64_t block(std::uint64_t i) const {
    const uint2 v = *reinterpret_cast<const uint2*>(records + i * words);
    return std::uint64_t{v.y} << 32 | v.x;
  }

  /// The first that is not before `block`, in ascending ones. Called by whole warps.
  __device__ std::uint64_t find(std::uint64_t before) const {
    const unsigned lane = threadIdx.x % 32;
    std::uint64_t low = 0;
    for (std::uint64_t high = count; low < high;) {
      const std::uint64_t step = (high - low + 31) / 32;
      const std::uint64_t at = low + lane * step;
      const bool below = at < high && block(at) < before;
      const auto passed = static_cast<unsigned>(__popc(__ballot_sync(~0u, below)));
      if (passed == 0) break;
      high = min(high, low + passed * step);
      low += (passed - 1) * step + 1;
    }
    return low;
  }

  /// Puts those of the unit that begins at block `base` in their places; `next` is the first that
  /// can be, and moves on. Called by whole warps.
  __device__ void apply(std::uint64_t base, std::uint64_t& next, Element (&x)[4]) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint64_t at = next + lane;
    const std::uint64_t offset = at < count ? block(at) - base : 32;
    const unsigned here = __ballot_sync(~0u, offset < 32);
    for (unsigned left = here; left != 0; left &= left - 1) {
      const int source = __ffs(static_cast<int>(left)) - 1;
      const auto target = static_cast<unsigned>(__shfl_sync(~0u, static_cast<int>(offset), source));
      if (target != lane) continue;
      const std::uint32_t* record = records + (next + source) * words + 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(Element) == 4) {
          x[i] = __uint_as_float(record[i]);
        } else {
          x[i] = __hiloint2double(static_cast<int>(record[2 * i + 1]),
                                  static_cast<int>(record[2 * i]));
        }
      }
    }
    next += __popc(here);
  }

  /// Whether records `begin` to `end` - 1 name ascending blocks below `blocks`; adds the thread's
  /// part of their checksum to `sum`. Called by all threads of the block.
  __device__ bool check(std::uint64_t begin, std::uint64_t end, std::uint64_t blocks,
                        std::uint64_t first_word, std::uint32_t& sum) const {
    bool sound = true;
    for (std::uint64_t i = begin + threadIdx.x; i < end; i += threads) {
      const std::uint64_t mine = block(i);
      sound = sound && mine < blocks && (i == 0 || block(i - 1) < mine);
      for (unsigned k = 0; k < words; ++k) {
        sum += weigh(records[i * words + k], first_word + i * words + k);
      }
    }
    return sound;
  }
};

/// The codes of a warp's blocks, from `count` words at `in`, the stream's words from `first` on.
/// Adds the lane's part of their checksum to `sum`.
template <int words>
__device__ __forceinline__ void fetch_unit(const std::uint32_t* in, std::uint64_t first,
                                           unsigned count, unsigned block_bits,
                                           std::uint32_t* stage,
                                           std::uint32_t (&code)[code_words<words>],
                                           std::uint32_t& sum) {
  const unsigned lane = threadIdx.x % 32;
  constexpr int n = code_words<words>;
  if (words != 0 && block_bits == 32 * n && count == block_bits) {
    if constexpr (n == 2) {
      const uint2 v = __ldcs(reinterpret_cast<const uint2*>(in) + lane);
      code[0] = v.x, code[1] = v.y;
    } else if constexpr (n % 4 == 0) {
#pragma unroll
      for (int i = 0; i < n; i += 4) {
        const uint4 v = *(reinterpret_cast<const uint4*>(in) + (lane * n + i) / 4);
        code[i] = v.x, code[i + 1] = v.y, code[i + 2] = v.z, code[i + 3] = v.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < n; ++i) code[i] = in[lane * n + i];
    }
#pragma unroll
    for (int i = 0; i < n; ++i) sum += weigh(code[i], first + lane * n + i);
    return;
  }
  __syncwarp();
  for (unsigned i = lane; i < stage_words<words>; i += 32) {
    std::uint32_t word = 0;
    if (i < count) {
      word = in[i];
      sum += weigh(word, first + i);
    }
    stage[i] = word;
  }
  __syncwarp();
  const unsigned place = lane * block_bits;
  const std::uint32_t* from = stage + place / 32;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    code[i] = __funnelshift_r(from[i], from[i + 1], place);
    const int valid = static_cast<int>(block_bits) - 32 * i;
    if (valid < 32) code[i] = valid <= 0 ? 0 : code[i] & ((1u << valid) - 1);
  }
}

/// Two neighbouring units of blocks of 16 bits.
__device__ __forceinline__ void fetch_halves(const std::uint32_t* in, std::uint64_t first,
                                             std::uint32_t& a, std::uint32_t& b,
                                             std::uint32_t& sum) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t word = __ldcs(in + lane);
  sum += weigh(word, first + lane);
  const unsigned half = lane % 2 != 0 ? 0x4432 : 0x4410;
  a = __byte_perm(__shfl_sync(~0u, word, static_cast<int>(lane / 2)), 0, half);
  b = __byte_perm(__shfl_sync(~0u, word, static_cast<int>(16 + lane / 2)), 0, half);
}

template <typename Element>
__device__ __forceinline__ Element combined(Combine combine, Element have, Element value) {
  if (combine == Combine::sum) return have + value;
  if (combine == Combine::prod) return have * value;
  const bool first = combine == Combine::min ? have < value : have > value;
  return first || have != have ? have : value;  // NaN where either is
}

/// Four elements at a multiple of 16 bytes.
template <typename Element>
__device__ __forceinline__ void load_four(const Element* in, Element (&x)[4]) {
  if constexpr (sizeof(Element) == 4) {
    const float4 v = *reinterpret_cast<const float4*>(in);
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
  } else {
    const auto* from = reinterpret_cast<const double2*>(in);
    const double2 a = from[0], b = from[1];
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y;
  }
}

template <typename Element>
__device__ __forceinline__ void store_four(const Element (&x)[4], Element* out) {
  if constexpr (sizeof(Element) == 4) {
    *reinterpret_cast<float4*>(out) = {x[0], x[1], x[2], x[3]};
  } else {
    auto* to = reinterpret_cast<double2*>(out);
    to[0] = {x[0], x[1]};
    to[1] = {x[2], x[3]};
  }
}

/// A chunk of a raw payload.
template <typename Element>
__device__ std::uint32_t copy_chunk(const Segment& segment, std::uint64_t index, Combine combine) {
  constexpr std::uint64_t size = units_per_chunk<Element> * 32 * kBlock;
  const auto* in = reinterpret_cast<const Element*>(segment.in);
  auto* out = reinterpret_cast<Element*>(segment.out);
  const std::uint64_t end = min((index + 1) * size, segment.count);
  std::uint32_t sum = 0;
  for (std::uint64_t i = index * size + threadIdx.x; i < end; i += threads) {
    const Element v = in[i];
    if constexpr (sizeof(Element) == 4) {
      sum += weigh(__float_as_uint(v), i);
    } else {
      sum += weigh(static_cast<std::uint32_t>(__double2loint(v)), 2 * i) +
             weigh(static_cast<std::uint32_t>(__double2hiint(v)), 2 * i + 1);
    }
    out[i] = combine == Combine::replace ? v : combined(combine, out[i], v);
  }
  return sum;
}

/// What the words behind stream and records add to the checksum, and whether it is the footer's.
template <typename Element>
__device__ bool checksum_holds(const Segment& segment, const Payload& payload,
                               std::uint32_t checksum) {
  const std::uint64_t words = payload.bytes / 4;
  const auto* in = reinterpret_cast<const std::uint32_t*>(segment.in);
  std::uint64_t at = words - 4;
  if (payload.raw && at * 4 != segment.count * sizeof(Element)) --at;
  for (; at < words - 1; ++at) checksum += weigh(in[at], at);
  return checksum == in[words - 1];
}

/// Prefetches the stream of the warp's units from `unit` on, where the payload may have it.
template <typename Element>
__device__ __forceinline__ void prefetch_words(const Segment& segment, std::uint64_t unit,
                                               unsigned block_bits) {
  const std::uint64_t at = unit * block_bits * 4;
  const unsigned bytes = units_per_warp<Element> * block_bits * 4;
  if (at + bytes <= segment.bytes) prefetch(segment.in + at, bytes);
}

__device__ inline void prefetch_footer(const Segment& segment) {
  if (threadIdx.x == 0 && !segment.encoded && segment.bytes >= sizeof(Footer)) {
    codec::cuda::prefetch(segment.in + segment.bytes - sizeof(Footer));
  }
}

template <int words, bool plain>
inline constexpr unsigned decode_residency = !plain      ? 4
                                             : words < 2 ? 6
                                                         : 5;  // thread blocks a multiprocessor

__device__ constexpr DecodeTable decode_table;
__device__ constexpr ShortDecodeTable short_decode_table;

template <typename Element, int words, bool plain, unsigned capacity>
__global__ void __launch_bounds__(threads, (decode_residency<words, plain>))
    decode_kernel(const __grid_constant__ Batch<capacity> batch, Workspace work,
                  unsigned block_bits, Grid grid, unsigned run, Combine combine) {
  constexpr unsigned units = units_per_warp<Element>;
  constexpr int n = code_words<words>;
  using Table = typename DecodeTables<words>::Table;
  __shared__ Shared<Table> table;
  __shared__ std::uint32_t stages[warps][stage_words<words>];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const Share share = share_of(batch, grid);
  if (share.begin < share.end) {
    const Task task = find_task(batch, share.begin);
    const Segment& segment = batch.segments[task.segment];
    prefetch_words<Element>(
        segment, std::uint64_t{task.index} * run * units_per_chunk<Element> + warp * units,
        block_bits);
    if (share.end > batch.first_task[task.segment + 1]) {
      const Segment& next = batch.segments[task.segment + 1];
      prefetch_words<Element>(next, warp * units, block_bits);
      prefetch_footer(next);
    }
  }
  if constexpr (words == 0) {
    table.load(short_decode_table);
  } else {
    table.load(decode_table);
  }
  bool loaded = false;
  for (std::uint32_t task = share.begin; task < share.end;) {
    const Task first = find_task(batch, task);
    const Segment& segment = batch.segments[first.segment];
    SegmentState& state = work.states[first.segment];
    const Payload payload = inspect<Element>(segment, block_bits);
    const std::uint32_t end = min(share.end, batch.first_task[first.segment + 1]);
    const std::uint32_t ended = end - task;
    const std::uint32_t begin = first.index * run;
    const auto index_end = static_cast<std::uint32_t>(
        min((std::uint64_t{first.index} + ended) * run, chunks_of<Element>(segment.count)));
    task = end;
    if (!loaded) table.await();
    loaded = true;
    std::uint32_t sum = 0;
    bool corrupt = false;  // this thread was the first to find it
    if (payload.status == Status::ok && payload.raw) {
      for (std::uint32_t index = begin; index < index_end; ++index) {
        sum += copy_chunk<Element>(segment, index, plain ? Combine::replace : combine);
      }
    } else if (payload.status == Status::ok) {
      const std::uint64_t blocks = block_count(segment.count);
      const std::uint64_t all_units = (blocks + 31) / 32;
      const std::uint64_t all_words = payload.stream / 4;
      const auto* in = reinterpret_cast<const std::uint32_t*>(segment.in);
      auto* out = reinterpret_cast<Element*>(segment.out);
      const std::uint32_t whole = whole_chunks<Element>(segment, segment.out);
      const Exceptions<Element> exceptions{in + all_words, payload.exceptions};
      for (std::uint32_t index = begin; index < index_end; ++index) {
        const std::uint64_t unit = std::uint64_t{index} * units_per_chunk<Element> + warp * units;
        std::uint64_t next = 0;
        if (exceptions.count != 0) next = exceptions.find(unit * 32);
        if (index < whole) {
          std::uint32_t code[units][n];
          Element have[units][4];
          if (words == 0 && units == 2 && block_bits == 16) {
            fetch_halves(in + unit * 16, unit * 16, code[0][0], code[units - 1][0], sum);
          } else {
#pragma unroll
            for (unsigned k = 0; k < units; ++k) {
              const std::uint64_t at = (unit + k) * block_bits;
              fetch_unit<words>(in + at, at, block_bits, block_bits, stages[warp], code[k], sum);
            }
          }
          if (index + 1 < index_end) {
            prefetch_words<Element>(segment, unit + units_per_chunk<Element>, block_bits);
          }
          if constexpr (!plain) {
            constexpr unsigned warp_elements = units * 32 * kBlock;
            if (index + 1 < min(whole, index_end)) {
              prefetch(out + unit * 32 * kBlock + warps * warp_elements,
                       warp_elements * sizeof(Element));
            }
          }
          Element* to = out + (unit * 32 + lane) * kBlock;
          if constexpr (!plain) {
#pragma unroll
            for (unsigned k = 0; k < units; ++k) load_four(to + k * 32 * kBlock, have[k]);
          }
          Element x[units][4];
#pragma unroll
          for (unsigned k = 0; k < units; ++k) {
            decode_elements<Element, words>(code[k], block_bits, table.get(), x[k]);
          }
          if (exceptions.count != 0) {
#pragma unroll
            for (unsigned k = 0; k < units; ++k) exceptions.apply((unit + k) * 32, next, x[k]);
          }
#pragma unroll
          for (unsigned k = 0; k < units; ++k) {
            if constexpr (!plain) {
#pragma unroll
              for (int i = 0; i < 4; ++i) x[k][i] = combined(combine, have[k][i], x[k][i]);
            }
            store_four(x[k], to + k * 32 * kBlock);
          }
        } else {
#pragma unroll 1
          for (unsigned k = 0; k < units && unit + k < all_units; ++k) {
            std::uint32_t code[n];
            const std::uint64_t at = (unit + k) * block_bits;
            const std::uint64_t left = unit + k + 1 < all_units ? block_bits : all_words - at;
            fetch_unit<words>(in + at, at, static_cast<unsigned>(left), block_bits, stages[warp],
                              code, sum);
            Element x[4];
            decode_elements<Element, words>(code, block_bits, table.get(), x);
            if (exceptions.count != 0) exceptions.apply((unit + k) * 32, next, x);
            const std::uint64_t element = ((unit + k) * 32 + lane) * kBlock;
            for (unsigned i = 0; i < kBlock && element + i < segment.count; ++i) {
              Element& place = out[element + i];
              place = plain ? x[i] : combined(combine, place, x[i]);
            }
          }
        }
      }
      if (exceptions.count != 0) {
        const std::uint64_t share_of_task = (exceptions.count + first.tasks - 1) / first.tasks;
        const std::uint64_t from = min(first.index * share_of_task, exceptions.count);
        const std::uint64_t to = min((first.index + ended) * share_of_task, exceptions.count);
        if (!exceptions.check(from, to, blocks, all_words, sum)) {
          corrupt = raise_status(state, Status::corrupt);
        }
      }
    }
    const SegmentEnd all = end_tasks(work.control, state, first.tasks, ended, sum, corrupt);
    if (all.last) {
      if (threadIdx.x == 0) {
        Status status = all.status;
        if (payload.status != Status::ok) {
          status = payload.status;
        } else if (!checksum_holds<Element>(segment, payload, all.checksum)) {
          status = Status::corrupt;
        }
        report(segment.result, payload.bytes, status, all.sequence);
      }
      end_segment(batch, work, first.segment, false, false);
    }
  }
}

}  // namespace mpress::codec::zfp::cuda
