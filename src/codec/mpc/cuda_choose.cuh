// choose_dim() on the device.
#pragma once

#include "codec/mpc/cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

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

// Runs are judged by thread blocks of their own, the first of the launch, and the encoding ones
// wait for what they find: a kernel in front would cost its start and its end.

/// What judges found of a segment's runs: of each its candidates' planes, `costs_a_word` to a word
/// of `verdict_there`, so that a word needs no order to others. Zero between calls.
inline constexpr unsigned cost_bits = 12;
inline constexpr unsigned costs_a_word = 5;
inline constexpr unsigned words_a_run = (choice::candidates + costs_a_word - 1) / costs_a_word;
inline constexpr unsigned verdict_words = choice::most_runs * words_a_run;
inline constexpr std::uint64_t verdict_there = std::uint64_t{1} << 63;
static_assert(32 * 64 < 1 << cost_bits && costs_a_word * cost_bits < 63);

/// Judges a segment's runs `first`, `first` + `step`, ..., by all threads. `ordered` is shared
/// memory for choice::span elements.
template <class Word>
__device__ void judge_runs(const Segment& segment, unsigned first, unsigned step, Word* ordered,
                           std::uint64_t* verdicts) {
  using namespace choice;
  __shared__ std::uint64_t planes[candidates];
  if (segment.count < span) return;
  const auto* in = reinterpret_cast<const Word*>(segment.in);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (unsigned run = first; run < runs(segment.count); run += step) {
    if (warp == 0) order_run(in + start(segment.count, run), ordered);
    __syncthreads();
    for (unsigned d = warp; d < candidates; d += unit_warps<Word>) {
      const std::uint32_t sum = planes_at(ordered, dim(d));
      if (lane == 0) planes[d] = sum;
    }
    __syncthreads();
    if (threadIdx.x < words_a_run) {
      std::uint64_t word = verdict_there;
      for (unsigned k = 0; k < costs_a_word; ++k) {
        const unsigned d = threadIdx.x * costs_a_word + k;
        if (d < candidates) word |= planes[d] << (k * cost_bits);
      }
      store_slot(verdicts + run * words_a_run + threadIdx.x, word);
    }
  }
}

/// The distance for a segment of `count` elements, by one warp, when its judges are done.
__device__ inline unsigned await_verdict(const std::uint64_t* verdicts, std::uint64_t count) {
  using namespace choice;
  __shared__ std::uint64_t found[verdict_words];
  if (count < span) return 1;
  const unsigned lane = threadIdx.x % 32;
  const unsigned all = runs(count);
  for (unsigned i = lane; i < all * words_a_run; i += 32) {
    std::uint64_t word;
    do word = load_slot(verdicts + i);
    while (word == 0);
    found[i] = word;
  }
  __syncwarp();
  const unsigned mine = min(lane, candidates - 1);
  const auto planes = [&](unsigned run, unsigned d) {
    const std::uint64_t word = found[run * words_a_run + d / costs_a_word];
    return static_cast<std::uint32_t>(word >> (d % costs_a_word * cost_bits)) &
           ((1u << cost_bits) - 1);
  };
  std::uint32_t cost = 0;  // of the lane's distance
  bool dropped = lane == 0 || lane >= candidates;
  for (unsigned phase = 0; phase < phases; ++phase) {
    for (unsigned run = phase; run < all; run += phases) {
      if (planes(run, 0) != 0) cost += planes(run, mine);
    }
    const std::uint32_t dense = __shfl_sync(all_lanes, cost, 0);
    dropped = dropped || cost > dense;
  }
  const std::uint32_t dense = __shfl_sync(all_lanes, cost, 0);
  const bool better = !dropped && cost + margin(count) < dense;
  const std::uint32_t best = warp_min(better ? cost * 32 + lane : ~0u);
  return best == ~0u ? 1 : dim(best % 32);
}

}  // namespace mpress::codec::mpc::cuda
