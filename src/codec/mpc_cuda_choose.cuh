// choose_dim() on the device, for each segment of a batch.
#pragma once

#include "codec/mpc_cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

inline constexpr unsigned choose_threads = 1024;

/// Planes of a block of 8 of a run's first differences at distance `dim`, by a warp's 32 lanes.
template <class Word>
__device__ std::uint32_t planes_at(const Word* ordered, unsigned dim) {
  const Interleaving order(choice::run, dim);
  auto at = order.walk(threadIdx.x % 32 * kBlock);
  Word any = 0;
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    const unsigned element = kMaxDim + order.element(at);
    any |= zigzag<Word>(ordered[element] - ordered[element - dim]);
    order.advance(at);
  }
  return warp_sum(bit_width(any));
}

/// A run's ordered integers, by one warp.
template <class Word>
__device__ void order_run(const Word* in, Word* ordered) {
  constexpr unsigned each = choice::span / 32;
  const unsigned lane = threadIdx.x % 32;
  Word x[each];
  Extent<Word> e{~Word{0}, 0, 0};
#pragma unroll
  for (unsigned i = 0; i < each; ++i) {
    x[i] = in[lane + 32 * i];
    const Word magnitude = x[i] & ~Layout<Word>::sign;
    e.least = min(e.least, magnitude - 1);
    e.largest = max(e.largest, magnitude);
    e.any |= x[i];
  }
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) {
    e.least = min(e.least, __shfl_xor_sync(all_lanes, e.least, step));
    e.largest = max(e.largest, __shfl_xor_sync(all_lanes, e.largest, step));
    e.any |= __shfl_xor_sync(all_lanes, e.any, step);
  }
  const Scale<Word> scale = scale_of<Word>(unit_word(e));
#pragma unroll
  for (unsigned i = 0; i < each; ++i) ordered[lane + 32 * i] = to_ordered(x[i], scale);
}

/// A thread block a segment: leaves the distance in the segment's state, as its `extent`.
template <class Word, unsigned capacity>
__global__ __launch_bounds__(choose_threads) void choose_dims(
    const __grid_constant__ Batch<capacity> batch, Workspace work) {
  using namespace choice;
  constexpr unsigned at_once = most_runs / phases;
  __shared__ Word ordered[at_once][span];
  __shared__ std::uint32_t planes[at_once][candidates];
  __shared__ bool any_left;
  const Segment& segment = batch.segments[blockIdx.x];
  const auto* in = reinterpret_cast<const Word*>(segment.in);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (segment.count < span) {
    if (threadIdx.x == 0) work.states[blockIdx.x].extent = 1;
    return;
  }
  const unsigned runs = choice::runs(segment.count);
  std::uint32_t cost = 0;  // of a lane's distance, in the first warp
  bool dropped = lane == 0 || lane >= candidates;
  for (unsigned phase = 0; phase < phases; ++phase) {
    const unsigned here = phase < runs ? (runs - phase + phases - 1) / phases : 0;
    if (warp < here) order_run(in + start(segment.count, phase + warp * phases), ordered[warp]);
    __syncthreads();
    for (unsigned i = warp; i < here * candidates; i += choose_threads / 32) {
      const unsigned r = i / candidates, d = i % candidates;
      const std::uint32_t sum = planes_at(ordered[r], dim(d));
      if (lane == 0) planes[r][d] = sum;
    }
    __syncthreads();
    if (warp == 0) {
      for (unsigned r = 0; r < here; ++r) {
        if (planes[r][0] != 0 && lane < candidates) cost += planes[r][lane];
      }
      const std::uint32_t dense = __shfl_sync(all_lanes, cost, 0);
      dropped = dropped || cost > dense;
      const bool left = __any_sync(all_lanes, !dropped);
      if (lane == 0) any_left = left;
    }
    __syncthreads();
    if (!any_left) break;
  }
  if (warp != 0) return;
  const std::uint32_t dense = __shfl_sync(all_lanes, cost, 0);
  const bool better = !dropped && cost + margin(segment.count) < dense;
  const std::uint32_t best = warp_min(better ? cost * 32 + lane : ~0u);
  if (lane == 0) work.states[blockIdx.x].extent = best == ~0u ? 1 : dim(best % 32);
}

}  // namespace mpress::codec::mpc::cuda
