// What runs behind the encoding kernel: completes segments with exceptions, and raw ones.
#pragma once

#include "codec/zfp/cuda_encode.cuh"

namespace mpress::codec::zfp::cuda {

/// The records of a task of `units` units, by one warp; `place` is that of its first. Returns the
/// lane's part of the checksum.
template <typename Element>
__device__ std::uint32_t write_exceptions(const Segment& segment, std::uint32_t task,
                                          unsigned units, std::uint64_t stream,
                                          std::uint64_t place) {
  constexpr ElementType type = sizeof(Element) == 4 ? ElementType::f32 : ElementType::f64;
  constexpr unsigned record_words = exception_bytes(type) / 4;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t blocks = block_count(segment.count);
  std::uint32_t sum = 0;
  for (unsigned k = 0; k < units; ++k) {
    const std::uint64_t block = (std::uint64_t{task} * units + k) * 32 + lane;
    Element x[4];
    load_partial(segment, block, x);
    bool zero;
    const bool bad = block < blocks && not_finite<Element>(largest_exponent(x, zero));
    const unsigned all = __ballot_sync(~0u, bad);
    if (bad) {
      const std::uint64_t at =
          stream / 4 + (place + __popc(all & ((1u << lane) - 1))) * record_words;
      std::uint32_t record[record_words];
      record[0] = static_cast<std::uint32_t>(block);
      record[1] = static_cast<std::uint32_t>(block >> 32);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const Element v = block * kBlock + i < segment.count ? x[i] : Element{0};
        if constexpr (sizeof(Element) == 4) {
          record[2 + i] = __float_as_uint(v);
        } else {
          record[2 + 2 * i] = static_cast<std::uint32_t>(__double2loint(v));
          record[3 + 2 * i] = static_cast<std::uint32_t>(__double2hiint(v));
        }
      }
      auto* out = reinterpret_cast<std::uint32_t*>(segment.out) + at;
#pragma unroll
      for (unsigned i = 0; i < record_words; ++i) {
        out[i] = record[i];
        sum += weigh(record[i], at + i);
      }
    }
    place += __popc(all);
  }
  return sum;
}

template <typename Element, unsigned capacity>
__global__ void __launch_bounds__(threads)
    complete_kernel(const __grid_constant__ Batch<capacity> batch, Workspace work,
                    unsigned block_bits, unsigned run) {
  if (*static_cast<volatile std::uint32_t*>(&work.control->raw_segments) == 0) return;
  constexpr ElementType type = sizeof(Element) == 4 ? ElementType::f32 : ElementType::f64;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
  const std::uint64_t all_threads = std::uint64_t{gridDim.x} * threads;
  for (std::uint32_t s = 0; s < batch.count; ++s) {
    const std::uint32_t left = work.states[s].raw;
    if (left == 0) continue;
    const Segment& segment = batch.segments[s];
    std::uint32_t sum = 0;
    if (left == left_raw) {
      const auto* in = reinterpret_cast<const std::uint32_t*>(segment.in);
      auto* out = reinterpret_cast<std::uint32_t*>(segment.out);
      const std::uint64_t words = segment.count * (sizeof(Element) / 4);
      for (std::uint64_t i = thread; i < words; i += all_threads) {
        const std::uint32_t word = in[i];
        out[i] = word;
        sum += weigh(word, i);
      }
    } else {
      const std::uint64_t stream = stream_bytes(type, segment.count, block_bits);
      const std::uint32_t first = batch.first_task[s];
      const std::uint32_t end = batch.first_task[s + 1];
      for (std::uint64_t t = first + thread / 32; t < end; t += all_threads / 32) {
        const std::uint64_t place = load_slot(work.slots + t);
        if (place == 0) continue;
        sum += write_exceptions<Element>(segment, static_cast<std::uint32_t>(t - first),
                                         run * units_per_chunk<Element>, stream, place - 1);
        if (threadIdx.x % 32 == 0) work.slots[t] = 0;
      }
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
    const Segment& segment = batch.segments[s];
    const bool raw = state.raw == left_raw;
    const std::uint64_t exceptions = raw ? 0 : state.extent;
    std::uint64_t body = raw_bytes(type, segment.count);
    if (!raw) {
      body = stream_bytes(type, segment.count, block_bits) + exceptions * exception_bytes(type);
    } else if (body != segment.count * sizeof(Element)) {
      reinterpret_cast<std::uint32_t*>(segment.out + body)[-1] = 0;
    }
    const std::uint32_t form = raw ? kFormRaw : kFormStream;
    const std::uint32_t footer[] = {static_cast<std::uint32_t>(exceptions),
                                    static_cast<std::uint32_t>(exceptions >> 32), form};
    std::uint32_t checksum = *static_cast<volatile std::uint32_t*>(&state.checksum);
    auto* out = reinterpret_cast<std::uint32_t*>(segment.out + body);
    for (unsigned i = 0; i < 3; ++i) {
      out[i] = footer[i];
      checksum += weigh(footer[i], body / 4 + i);
    }
    out[3] = checksum;
    report(segment.result, body + sizeof(Footer), Status::ok, work.control->sequence);
    state = {};
  }
  work.control->raw_segments = 0;
  work.control->raw_done = 0;
}

}  // namespace mpress::codec::zfp::cuda
