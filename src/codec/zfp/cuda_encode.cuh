// Encoding kernel of zfp's CUDA twin.
#pragma once

#include "codec/zfp/cuda_kernel.cuh"

namespace mpress::codec::zfp::cuda {

// How a segment with exceptions is completed, in SegmentState::raw.
inline constexpr std::uint32_t left_raw = 1;
inline constexpr std::uint32_t left_exceptions = 2;

/// The elements of block `block`, padded; of a block beyond the end, zeros (libzfp: pad_block()).
template <typename Element>
__device__ void load_partial(const Segment& segment, std::uint64_t block, Element (&x)[4]) {
  const auto* in = reinterpret_cast<const Element*>(segment.in);
  const std::uint64_t at = block * kBlock;
  const std::uint64_t left = at < segment.count ? segment.count - at : 0;
  for (unsigned i = 0; i < 4; ++i) x[i] = i < left ? in[at + i] : Element{0};
  if (left == 0) return;
  if (left < 2) x[1] = x[0];
  if (left < 3) x[2] = x[1];
  if (left < 4) x[3] = x[0];
}

/// Four elements at a multiple of 16 bytes.
template <typename Element>
__device__ __forceinline__ void load_whole(const Element* in, Element (&x)[4]) {
  if constexpr (sizeof(Element) == 4) {
    const float4 v = __ldcs(reinterpret_cast<const float4*>(in));
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
  } else {
    const auto* from = reinterpret_cast<const double2*>(in);
    const double2 a = from[0], b = from[1];
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y;
  }
}

/// Makes zero blocks of exceptions; returns how many there are in the warp.
template <int n>
__device__ __forceinline__ unsigned drop_exceptions(bool finite, std::uint32_t (&code)[n]) {
#pragma unroll
  for (std::uint32_t& word : code) word = finite ? word : 0;
  return static_cast<unsigned>(__popc(__ballot_sync(~0u, !finite)));
}

/// Writes words at `out`, which is unit `first` / block_bits's place, from the codes of a warp's
/// blocks. Returns the lane's part of the checksum.
template <int words>
__device__ __forceinline__ std::uint32_t store_unit(std::uint32_t (&code)[code_words<words>],
                                                    unsigned block_bits, std::uint32_t* out,
                                                    std::uint64_t first, unsigned count,
                                                    std::uint32_t* stage) {
  const unsigned lane = threadIdx.x % 32;
  constexpr int n = code_words<words>;
  std::uint32_t sum = 0;
  if (words != 0 && words != 3 && block_bits == 32 * n && count == block_bits) {
    const std::uint64_t at = first + lane * n;
#pragma unroll
    for (int i = 0; i < n; ++i) sum += weigh(code[i], at + i);
    if constexpr (n == 1) {
      out[lane] = code[0];
    } else if constexpr (n == 2) {
      reinterpret_cast<uint2*>(out)[lane] = {code[0], code[1]};
    } else if constexpr (n % 4 == 0) {
#pragma unroll
      for (int i = 0; i < n; i += 4) {
        reinterpret_cast<uint4*>(out)[(lane * n + i) / 4] = {code[i], code[i + 1], code[i + 2],
                                                             code[i + 3]};
      }
    }
    return sum;
  }
  __syncwarp();
  if (words == 3 && block_bits == 96) {
#pragma unroll
    for (int i = 0; i < n; ++i) stage[lane * n + i] = code[i];
    __syncwarp();
  } else {
    for (unsigned i = lane; i < stage_words<words>; i += 32) stage[i] = 0;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const int valid = static_cast<int>(block_bits) - 32 * i;
      if (valid < 32) code[i] = valid <= 0 ? 0 : code[i] & ((1u << valid) - 1);
    }
    const unsigned place = lane * block_bits;
    const unsigned up = place % 32;
    std::uint32_t carry = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i <= n; ++i) {
      const std::uint32_t word = i < n ? code[i] : 0;
      const std::uint32_t part = __funnelshift_l(carry, word, up);
      carry = word;
      if (part != 0) atomicOr(stage + place / 32 + i, part);
    }
    __syncwarp();
  }
  for (unsigned i = lane; i < count; i += 32) {
    const std::uint32_t word = stage[i];
    out[i] = word;
    sum += weigh(word, first + i);
  }
  return sum;
}

/// Two neighbouring units of blocks of 16 bits.
__device__ __forceinline__ std::uint32_t store_halves(std::uint32_t a, std::uint32_t b,
                                                      std::uint32_t* out, std::uint64_t first) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t mine = __byte_perm(a, b, 0x5410);
  const std::uint32_t other = __shfl_xor_sync(~0u, mine, 1);
  const bool odd = lane % 2 != 0;  // an odd lane serves the second unit
  const std::uint32_t word =
      odd ? __byte_perm(other, mine, 0x7632) : __byte_perm(mine, other, 0x5410);
  const unsigned at = lane / 2 + (odd ? 16 : 0);
  out[at] = word;
  return weigh(word, first + at);
}

/// Ends a segment whose stream is complete; it is flagged where there are exceptions.
template <typename Element, unsigned capacity>
__device__ void end_stream(const Batch<capacity>& batch, const Workspace& work, std::uint32_t index,
                           unsigned block_bits, const SegmentEnd& all) {
  constexpr ElementType type = sizeof(Element) == 4 ? ElementType::f32 : ElementType::f64;
  const Segment& segment = batch.segments[index];
  SegmentState& state = work.states[index];
  const std::uint64_t stream = stream_bytes(type, segment.count, block_bits);
  if (!all.flagged) {
    if (threadIdx.x == 0) {
      const std::uint64_t at = stream / 4;
      const std::uint32_t checksum = all.checksum + weigh(kFormStream, at + 2);
      auto* footer = reinterpret_cast<uint2*>(segment.out + stream);
      footer[0] = {0, 0};
      footer[1] = {kFormStream, checksum};
      report(segment.result, stream + sizeof(Footer), Status::ok, all.sequence);
    }
    end_segment(batch, work, index, false, false);
    return;
  }
  const std::uint64_t exceptions = *static_cast<volatile std::uint64_t*>(&state.extent);
  const std::uint64_t room = max_bytes(type, segment.count, block_bits) - sizeof(Footer) - stream;
  const bool raw = exceptions > room / exception_bytes(type);
  if (!raw) {  // each task's number of exceptions becomes the place of its first, plus 1
    __shared__ std::uint32_t sums[warps];
    const unsigned lane = threadIdx.x % 32;
    std::uint64_t before = 1;
    const std::uint32_t end = batch.first_task[index + 1];
    constexpr unsigned each = 8;
    for (std::uint32_t base = batch.first_task[index]; base < end; base += threads * each) {
      const std::uint32_t mine = base + threadIdx.x * each;
      std::uint32_t counts[each];
      std::uint32_t own = 0;
#pragma unroll
      for (unsigned i = 0; i < each; ++i) {
        counts[i] =
            mine + i < end ? static_cast<std::uint32_t>(load_slot(work.slots + mine + i)) : 0;
        own += counts[i];
      }
      std::uint32_t through = own;
      for (unsigned step = 1; step < 32; step *= 2) {
        const std::uint32_t below = __shfl_up_sync(~0u, through, step);
        if (lane >= step) through += below;
      }
      __syncthreads();
      if (lane == 31) sums[threadIdx.x / 32] = through;
      __syncthreads();
      std::uint64_t place = before + through - own;
      for (unsigned w = 0; w < warps; ++w) {
        if (w < threadIdx.x / 32) place += sums[w];
        before += sums[w];
      }
#pragma unroll
      for (unsigned i = 0; i < each; ++i) {
        if (counts[i] != 0) work.slots[mine + i] = place;
        place += counts[i];
      }
    }
  }
  __syncthreads();
  end_segment(batch, work, index, raw, true);
  __syncthreads();
  if (threadIdx.x == 0) {
    state.raw = raw ? left_raw : left_exceptions;
    state.checksum = raw ? 0 : all.checksum;
  }
}

template <typename Element, int words>
inline constexpr unsigned encode_residency =  // thread blocks a multiprocessor
    words < 2              ? 6
    : sizeof(Element) == 4 ? 4
    : words == 2           ? 3
                           : 2;

__device__ constexpr EncodeTable encode_table;
__device__ constexpr ShortEncodeTable short_encode_table;

template <typename Element, int words, unsigned capacity>
__global__ void __launch_bounds__(threads, (encode_residency<Element, words>))
    encode_kernel(const __grid_constant__ Batch<capacity> batch, Workspace work,
                  unsigned block_bits, Grid grid, unsigned run) {
  constexpr unsigned units = units_per_warp<Element>;
  constexpr int n = code_words<words>;
  constexpr ElementType type = sizeof(Element) == 4 ? ElementType::f32 : ElementType::f64;
  using Table = typename EncodeTables<words>::Table;
  __shared__ Shared<Table> table;
  __shared__ std::uint32_t stages[warps][stage_words<words>];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  constexpr std::uint64_t unit_elements = 32 * kBlock;
  constexpr unsigned warp_bytes = units * unit_elements * sizeof(Element);
  const Share share = share_of(batch, grid);
  if (share.begin < share.end) {
    const Task task = find_task(batch, share.begin);
    const Segment& segment = batch.segments[task.segment];
    if (task.index * run < whole_chunks<Element>(segment, segment.in)) {
      prefetch(segment.in + (std::uint64_t{task.index} * run * warps + warp) * warp_bytes,
               warp_bytes);
    }
  }
  if constexpr (words == 0) {
    table.load(short_encode_table);
  } else {
    table.load(encode_table);
  }
  table.await();
  for (std::uint32_t task = share.begin; task < share.end;) {
    const Task first = find_task(batch, task);
    const Segment& segment = batch.segments[first.segment];
    const std::uint32_t end = min(share.end, batch.first_task[first.segment + 1]);
    const std::uint64_t all_units = (block_count(segment.count) + 31) / 32;
    const std::uint64_t all_words = stream_bytes(type, segment.count, block_bits) / 4;
    const std::uint32_t whole = whole_chunks<Element>(segment, segment.in);
    auto* out = reinterpret_cast<std::uint32_t*>(segment.out);
    const std::uint64_t first_unit =
        std::uint64_t{first.index} * run * units_per_chunk<Element> + warp * units;
    const auto* from =
        reinterpret_cast<const Element*>(segment.in) + first_unit * unit_elements + lane * kBlock;
    std::uint64_t at = first_unit * block_bits;
    std::uint32_t index = first.index * run;
    const auto index_end = static_cast<std::uint32_t>(
        min((std::uint64_t{first.index} + (end - task)) * run, chunks_of<Element>(segment.count)));
    const std::uint32_t ended = end - task;
    task = end;
    std::uint32_t sum = 0;
    bool first_exception = false;
    for (; index < index_end; ++index) {
      std::uint32_t bad = 0;  // exceptions of this warp
      if (index < whole) {
        Element x[units][4];
#pragma unroll
        for (unsigned k = 0; k < units; ++k) load_whole(from + k * unit_elements, x[k]);
        from += units_per_chunk<Element> * unit_elements;
        if (index + 1 < min(whole, index_end)) prefetch(from - lane * kBlock, warp_bytes);
        std::uint32_t code[units][n];
        bool finite[units];
        bool all_finite = true;
#pragma unroll
        for (unsigned k = 0; k < units; ++k) {
          finite[k] = encode_elements<Element, words>(x[k], table.get(), code[k]);
          all_finite = all_finite && finite[k];
        }
        if (!__all_sync(~0u, all_finite)) {
#pragma unroll
          for (unsigned k = 0; k < units; ++k) bad += drop_exceptions(finite[k], code[k]);
        }
        if (words == 0 && units == 2 && block_bits == 16) {
          sum += store_halves(code[0][0], code[units - 1][0], out + at, at);
        } else {
#pragma unroll
          for (unsigned k = 0; k < units; ++k) {
            const std::uint64_t place = at + k * block_bits;
            sum += store_unit<words>(code[k], block_bits, out + place, place, block_bits,
                                     stages[warp]);
          }
        }
      } else {
        const std::uint64_t unit = std::uint64_t{index} * units_per_chunk<Element> + warp * units;
#pragma unroll 1
        for (unsigned k = 0; k < units && unit + k < all_units; ++k) {
          Element x[4];
          std::uint32_t code[n];
          load_partial(segment, (unit + k) * 32 + lane, x);
          const bool finite = encode_elements<Element, words>(x, table.get(), code);
          bad += drop_exceptions(finite, code);
          const std::uint64_t place = at + k * block_bits;
          const std::uint64_t left = unit + k + 1 < all_units ? block_bits : all_words - place;
          sum += store_unit<words>(code, block_bits, out + place, place,
                                   static_cast<unsigned>(left), stages[warp]);
        }
      }
      at += units_per_chunk<Element> * block_bits;
      if (bad != 0 && lane == 0) {
        const std::uint32_t slot_at = batch.first_task[first.segment] + index / run;
        auto* slot = reinterpret_cast<unsigned long long*>(work.slots + slot_at);
        atomicAdd(slot, static_cast<unsigned long long>(bad));
        auto* extent = reinterpret_cast<unsigned long long*>(&work.states[first.segment].extent);
        first_exception |= atomicAdd(extent, static_cast<unsigned long long>(bad)) == 0;
      }
    }
    const SegmentEnd all = end_tasks(work.control, work.states[first.segment], first.tasks, ended,
                                     sum, first_exception);
    if (all.last) end_stream<Element>(batch, work, first.segment, block_bits, all);
  }
}

}  // namespace mpress::codec::zfp::cuda
