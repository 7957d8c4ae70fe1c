// Encoding one unit by one thread block: analyse, plan, pack. Every thread holds one block's quanta
// in registers.
#pragma once

#include "codec/szp/cuda_pack.cuh"
#include "codec/szp/cuda_unit.cuh"

namespace mpress::codec::szp::cuda {

/// The unit that a thread block encodes.
struct EncodingUnit {
  const unsigned char* elements;
  std::uint32_t* words;  ///< shared memory: the elements' rows, then the unit's words
  std::uint64_t* slots;  ///< of its segment, one a task
  std::uint32_t task;    ///< within the segment
  std::uint32_t before;  ///< words of that task's units before it
  bool last;             ///< of that task
  std::uint32_t count;   ///< elements
  std::uint32_t blocks;
  bool dense;

  /// Tells the tasks behind its own that one's size, if no unit follows in it; by one thread.
  __device__ void publish(std::uint32_t own) const {
    if (last) codec::cuda::publish_unit(slots, task, before + own);
  }
};

/// What a warp tells the others about its blocks.
struct alignas(16) WarpPlan {
  std::uint32_t sums;    ///< planes, blocks with a code << 16
  std::uint32_t coded;   ///< a bit a block
  std::uint32_t forms;   ///< set of those in use
  std::uint32_t widths;  ///< the largest, max_width less the least one << 16
};

struct WarpExceptions {
  std::uint32_t first;    ///< index of the first exceptional element, or ~0
  std::uint32_t partial;  ///< bitmaps
  std::uint32_t listed;
  std::uint32_t values;  ///< elements kept one by one
};

template <class T>
struct EncodeShared {
  using Quantum = typename Traits<T>::Quantum;

  WarpPlan plans[Shape<T>::warps];
  WarpExceptions exceptions[Shape<T>::warps];
  alignas(16) Quantum least[Shape<T>::warps];
  alignas(16) Quantum greatest[Shape<T>::warps];
  Quantum tails[Shape<T>::warps][3];  ///< the last of a warp's last block
  std::uint32_t resolved[Shape<T>::warps];
  Quantum origin;
  std::uint64_t place;
};

template <class I>
__device__ I warp_min(I value) {
  if constexpr (sizeof(I) == 4) {
    return codec::cuda::warp_min(value);
  } else {
    for (unsigned step = 16; step > 0; step /= 2) {
      const I other = __shfl_xor_sync(~0u, value, step);
      value = other < value ? other : value;
    }
    return value;
  }
}

/// Bits that a non-negative number takes.
__device__ inline std::uint32_t bits_of(std::int32_t x) {
  std::uint32_t highest;  // ~0 of 0
  asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(x));
  return highest + 1;
}
__device__ inline std::uint32_t bits_of(std::int64_t x) { return 64 - __clzll(x); }

template <class I>
__device__ __forceinline__ void extend(I& lo, I& hi, I a, I b) {
  if constexpr (sizeof(I) == 4) {
    lo = __vimin3_s32(lo, a, b);
    hi = __vimax3_s32(hi, a, b);
  } else {
    lo = min(lo, min(a, b));
    hi = max(hi, max(a, b));
  }
}

/// Least and greatest residual of a block under each order.
template <class I>
struct Extent {
  I lo[4];
  I hi[4];
};

/// The most that the quanta of a block and those before it may span for halves of a word to hold
/// the residuals of every order: order 3 multiplies the span by up to 4.
inline constexpr std::uint32_t pair_span = 8191;

/// Orders 1 to 3 of quanta that span at most pair_span. Elements i and i + 16 are the halves of a
/// word. Words are sums mod 2^32, hence so are their differences, whatever overflows in between;
/// a bias keeps the halves of those apart.
__device__ __forceinline__ void analyse_pairs(const std::int32_t (&q)[32],
                                              const std::int32_t (&before)[3], bool dense,
                                              Extent<std::int32_t>& e) {
  constexpr std::uint32_t bias = 0x80008000;
  std::uint32_t pairs[19];
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) {
    pairs[i + 3] = static_cast<std::uint32_t>(q[i + 16]) * 65536 + static_cast<std::uint32_t>(q[i]);
  }
#pragma unroll
  for (unsigned i = 0; i < 3; ++i) {
    pairs[2 - i] =
        static_cast<std::uint32_t>(q[15 - i]) * 65536 + static_cast<std::uint32_t>(before[i]);
  }
  const auto span = [&](unsigned order, const std::uint32_t* residuals) {
    std::uint32_t lo = bias, hi = bias;
#pragma unroll
    for (unsigned i = 0; i < 16; i += 2) {
      lo = __vimin3_u16x2(lo, residuals[i], residuals[i + 1]);
      hi = __vimax3_u16x2(hi, residuals[i], residuals[i + 1]);
    }
    e.lo[order] = static_cast<std::int32_t>(min(lo & 0xFFFF, lo >> 16)) - 0x8000;
    e.hi[order] = static_cast<std::int32_t>(max(hi & 0xFFFF, hi >> 16)) - 0x8000;
  };
  std::uint32_t slopes[18], bends[17], turns[16];
#pragma unroll
  for (unsigned i = 0; i < 18; ++i) {
    slopes[i] = pairs[i + 1] - pairs[i] + bias;
    asm("" : "+r"(slopes[i]));  // else the compiler takes bends apart, which costs one sum more
  }
#pragma unroll
  for (unsigned i = 0; i < 17; ++i) bends[i] = slopes[i + 1] - slopes[i] + bias;
  span(1, slopes + 2);
  span(2, bends + 1);
  if (dense) {
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) turns[i] = bends[i + 1] - bends[i] + bias;
    span(3, turns);
  }
}

/// `before`: the three quanta before the block, the nearest first. By whole warps.
template <class I>
__device__ __forceinline__ Extent<I> analyse(const I (&q)[32], const I (&before)[3], bool dense) {
  Extent<I> e{{q[0], 0, 0, 0}, {q[0], 0, 0, 0}};
#pragma unroll
  for (unsigned i = 0; i < 32; i += 2) extend(e.lo[0], e.hi[0], q[i], q[i + 1]);
  if constexpr (sizeof(I) == 4) {
    I lo = e.lo[0], hi = e.hi[0];
    extend(lo, hi, before[0], before[1]);
    extend(lo, hi, before[0], before[2]);
    const std::uint32_t span = static_cast<std::uint32_t>(hi) - static_cast<std::uint32_t>(lo);
    if (__all_sync(~0u, span <= pair_span)) {
      analyse_pairs(q, before, dense, e);
      return e;
    }
  }
  I last = before[0];
  I slope = before[0] - before[1];
#pragma unroll
  for (unsigned i = 0; i < 32; i += 2) {
    const I slope0 = q[i] - last;
    const I slope1 = q[i + 1] - q[i];
    extend(e.lo[1], e.hi[1], slope0, slope1);
    extend(e.lo[2], e.hi[2], slope0 - slope, slope1 - slope0);
    last = q[i + 1];
    slope = slope1;
  }
  if (dense) {
    last = before[0];
    slope = before[0] - before[1];
    I bend = slope - (before[1] - before[2]);
#pragma unroll
    for (unsigned i = 0; i < 32; i += 2) {
      const I slope0 = q[i] - last;
      const I slope1 = q[i + 1] - q[i];
      const I bend0 = slope0 - slope;
      const I bend1 = slope1 - slope0;
      extend(e.lo[3], e.hi[3], bend0 - bend, bend1 - bend0);
      last = q[i + 1];
      slope = slope1;
      bend = bend1;
    }
  }
  return e;
}

/// The three quanta before the thread's block, the nearest first; before the unit, its first one. A
/// barrier is inside.
template <class T, class I>
__device__ __forceinline__ void quanta_before(EncodeShared<T>& s, const I (&q)[32],
                                              I (&before)[3]) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  if (lane == 31) {
    for (unsigned i = 0; i < 3; ++i) s.tails[warp][i] = q[31 - i];
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < 3; ++i) {
    const I up = __shfl_up_sync(~0u, q[31 - i], 1);
    before[i] = threadIdx.x == 0 ? q[0] : lane == 0 ? static_cast<I>(s.tails[warp - 1][i]) : up;
  }
}

/// Tells the other warps what this one's quanta span. `first`: the thread's first one.
template <class T, class I>
__device__ void share_range(EncodeShared<T>& s, const EncodingUnit& u, I first,
                            const Extent<I>& e) {
  const bool active = threadIdx.x < u.blocks;
  const I least = warp_min(active ? e.lo[0] : std::numeric_limits<I>::max());
  const I greatest = ~warp_min(active ? ~e.hi[0] : std::numeric_limits<I>::max());
  if (threadIdx.x % 32 == 0) {
    s.least[threadIdx.x / 32] = least;
    s.greatest[threadIdx.x / 32] = greatest;
  }
  if (threadIdx.x == 0) s.origin = first;
}

template <class T>
__device__ typename Traits<T>::Bits element_bits(const EncodingUnit& u, std::uint32_t i) {
  const std::uint32_t last = u.count - 1;
  return reinterpret_cast<const typename Traits<T>::Bits*>(u.elements)[i < last ? i : last];
}

/// How a block's exceptions are kept, and where in the unit.
struct ExceptionPlan {
  bool partial = false;
  bool listed = false;
  std::uint32_t values_before = 0;  ///< of this warp
};

template <class T>
__device__ ExceptionPlan plan_exceptions(EncodeShared<T>& s, const EncodingUnit& u,
                                         std::uint32_t mask) {
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t own = mask == 0 ? ~0u : threadIdx.x * block_elements + __ffs(mask) - 1;
  const std::uint32_t first = warp_min(own);
  if (threadIdx.x % 32 == 0) s.exceptions[warp].first = first;
  __syncthreads();
  std::uint32_t fill_at = ~0u;
  for (unsigned w = 0; w < Shape<T>::warps; ++w) fill_at = min(fill_at, s.exceptions[w].first);
  ExceptionPlan plan;
  std::uint32_t values = 0;
  if (mask != 0) {
    const auto fill = element_bits<T>(u, fill_at);
    bool uniform = true;
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      uniform &= element_bits<T>(u, threadIdx.x * block_elements + __ffs(left) - 1) == fill;
    }
    const bool whole = uniform && mask == ~0u;
    plan.partial = !whole;
    plan.listed = whole || !uniform;
    values = uniform ? 0 : __popc(mask);
  }
  const std::uint32_t scanned = scan_inclusive(values);
  plan.values_before = scanned - values;
  const std::uint32_t partial = __ballot_sync(~0u, plan.partial);
  const std::uint32_t listed = __ballot_sync(~0u, plan.listed);
  if (threadIdx.x % 32 == 31) {
    s.exceptions[warp].partial = partial;
    s.exceptions[warp].listed = listed;
    s.exceptions[warp].values = scanned;
  }
  return plan;
}

/// Writes the sections that only exceptions have, from word `maps` and word `masks` on.
template <class T>
__device__ void write_exceptions(EncodeShared<T>& s, const EncodingUnit& u, std::uint32_t mask,
                                 const ExceptionPlan& plan, unsigned maps, unsigned masks) {
  constexpr unsigned value_words = Shape<T>::element_words;
  const unsigned warp = threadIdx.x / 32;
  const unsigned map_words = (u.blocks + 31) / 32;
  std::uint32_t fill_at = ~0u;
  unsigned rank = 0;
  unsigned masked = 0;
  unsigned values = plan.values_before;
  for (unsigned w = 0; w < Shape<T>::warps; ++w) {
    const WarpExceptions& e = s.exceptions[w];
    fill_at = min(fill_at, e.first);
    masked += __popc(e.partial);
    if (w >= warp) continue;
    rank += __popc(e.partial);
    values += e.values;
  }
  const auto put = [&](unsigned at, typename Traits<T>::Bits bits) {
    u.words[padded(at)] = static_cast<std::uint32_t>(bits);
    if constexpr (value_words == 2)
      u.words[padded(at + 1)] = static_cast<std::uint32_t>(bits >> 32);
  };
  if (threadIdx.x < map_words) {
    u.words[padded(maps + threadIdx.x)] = s.exceptions[threadIdx.x].partial;
    u.words[padded(maps + map_words + threadIdx.x)] = s.exceptions[threadIdx.x].listed;
  }
  if (threadIdx.x == 0) put(maps + 2 * map_words, element_bits<T>(u, fill_at));
  if (!plan.partial) return;
  rank += __popc(s.exceptions[warp].partial & lane_mask_below());
  u.words[padded(masks + rank)] = mask;
  if (!plan.listed) return;
  unsigned at = masks + masked + values * value_words;
  for (std::uint32_t left = mask; left != 0; left &= left - 1, at += value_words) {
    put(at, element_bits<T>(u, threadIdx.x * block_elements + __ffs(left) - 1));
  }
}

struct EncodedUnit {
  std::uint32_t words;  ///< also of a raw unit
  bool raw;
};

/// Plans the unit, publishes its size and packs it into u.words, which hold nothing else by now.
/// Behind a barrier that followed share_range(). `zero`: what `q` and `before` hold where the
/// quantum is 0.
template <class T, class I>
__device__ __forceinline__ EncodedUnit pack_unit(EncodeShared<T>& s, const EncodingUnit& u,
                                                 const I (&q)[32], const I (&before)[3], I zero,
                                                 const Extent<I>& e, bool exceptional,
                                                 std::uint32_t mask) {
  constexpr unsigned warps = Shape<T>::warps;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  I least = static_cast<I>(s.least[0]);
  I greatest = static_cast<I>(s.greatest[0]);
  for (unsigned w = 1; w < warps; ++w) {
    least = min(least, static_cast<I>(s.least[w]));
    greatest = max(greatest, static_cast<I>(s.greatest[w]));
  }
  if (least == 0 && greatest == 0 && !exceptional) {
    if (threadIdx.x == 0) u.publish(0);
    return {0, false};
  }
  const I origin = static_cast<I>(s.origin);
  const I centre = least <= 0 && greatest >= 0 ? I{0} : least + (greatest - least) / 2;

  // The form of least width. Order 1 without residuals is that of blocks without a code.
  const bool coded = threadIdx.x < u.blocks && (e.lo[1] | e.hi[1]) != 0;
  std::uint32_t best = ~0u;
  const auto consider = [&](I lo, I hi, std::uint32_t form) {
    const std::uint32_t even = (bits_of(max(~lo, hi)) + 1) * 8 + form;
    const std::uint32_t flipped = (bits_of(max(-lo, hi - 1)) + 1) * 8 + form + 1;
    best = min(best, min(even, flipped));
    if ((lo | hi) == 0) best = min(best, form);
  };
  consider(e.lo[1], e.hi[1], 0);
  consider(e.lo[2], e.hi[2], 2);
  consider(e.lo[0] - centre, e.hi[0] - centre, 4);
  if (u.dense) consider(e.lo[3], e.hi[3], 6);
  const std::uint32_t width = coded ? best / 8 : 0;
  const std::uint32_t form = coded ? best % 8 : 0;

  // What the unit's blocks have in common.
  const std::uint32_t scanned = scan_inclusive(width);
  const std::uint32_t warp_coded = __ballot_sync(~0u, coded);
  const std::uint32_t warp_widest = warp_max(width);
  {
    const std::uint32_t forms_used = warp_or(coded ? 1u << form : 0);
    const std::uint32_t below_most = warp_max(coded ? max_width - width : 0);
    if (lane == 31) {
      s.plans[warp] = {scanned + (__popc(warp_coded) << 16), warp_coded, forms_used,
                       warp_widest | below_most << 16};
    }
  }
  if (threadIdx.x < 64) u.words[padded(threadIdx.x)] = 0;
  ExceptionPlan exceptions;
  if (exceptional) exceptions = plan_exceptions(s, u, mask);
  __syncthreads();
  std::uint32_t sums = 0, sums_before = 0, used = 0, widths = 0;
  for (unsigned w = 0; w < warps; ++w) {
    const WarpPlan plan = s.plans[w];
    if (w < warp) sums_before += plan.sums;
    sums += plan.sums;
    used |= plan.forms;
    widths = __vmaxu2(widths, plan.widths);
  }
  const std::uint32_t planes = sums & 0xFFFF;
  const std::uint32_t coded_blocks = sums >> 16;
  const std::uint32_t planes_before = (sums_before & 0xFFFF) + scanned - width;
  const std::uint32_t rank = (sums_before >> 16) + __popc(warp_coded & lane_mask_below());
  const std::uint32_t widest = widths & 0xFFFF;
  const std::uint32_t narrowest = max_width - (widths >> 16);

  // The head, and where the sections are.
  std::uint32_t head = (sizeof(I) == 8 ? is_wide : 0) | (exceptional ? has_exceptions : 0);
  unsigned at = 1;
  const unsigned origin_at = at;
  if (origin != 0) {
    head |= has_origin;
    at += sizeof(I) / 4;
  }
  const unsigned centre_at = at;
  const unsigned map_words = (u.blocks + 31) / 32;
  const std::uint32_t form_count = __popc(used);
  std::uint32_t code_bits = 0;
  if (coded_blocks != 0) {
    code_bits = bits_of(static_cast<std::int32_t>((widest - narrowest + 1) * form_count - 1));
    head |= narrowest | used << forms_shift | code_bits << code_bits_shift;
    constexpr std::uint32_t order0 = 3u << 4;
    if ((used & order0) != 0 && centre != 0) {
      head |= has_centre;
      at += sizeof(I) / 4;
    }
    if (coded_blocks < u.blocks) head |= has_bitmap;
  }
  const unsigned map_at = at;
  if ((head & has_bitmap) != 0) at += map_words;
  const unsigned codes_at = at;
  at += (coded_blocks * code_bits + 31) / 32;
  const unsigned exception_maps_at = at;
  if (exceptional) at += 2 * map_words + Shape<T>::element_words;
  const unsigned planes_at = at;
  at += planes;
  const unsigned masks_at = at;
  if (exceptional) {
    for (unsigned w = 0; w < warps; ++w) {
      at += __popc(s.exceptions[w].partial) + s.exceptions[w].values * Shape<T>::element_words;
    }
  }
  const bool raw = at >= u.count * Shape<T>::element_words;
  if (raw) at = u.count * Shape<T>::element_words;
  if (threadIdx.x == 0) u.publish(at);
  if (raw) return {at, true};

  if (threadIdx.x == 0) {
    const auto put = [&](unsigned to, I value) {
      u.words[padded(to)] = static_cast<std::uint32_t>(value);
      if constexpr (sizeof(I) == 8) {
        u.words[padded(to + 1)] =
            static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32);
      }
    };
    u.words[0] = head;
    if ((head & has_origin) != 0) put(origin_at, origin);
    if ((head & has_centre) != 0) put(centre_at, centre);
  }
  if ((head & has_bitmap) != 0 && threadIdx.x < map_words) {
    u.words[padded(map_at + threadIdx.x)] = s.plans[threadIdx.x].coded;
  }
  if (coded && code_bits != 0) {
    const std::uint32_t code = (width - narrowest) * form_count + __popc(used & ((1u << form) - 1));
    const unsigned bit = rank * code_bits;
    const std::uint64_t bits = std::uint64_t{code} << (bit % 32);
    const unsigned word = codes_at + bit / 32;
    atomicOr(&u.words[padded(word)], static_cast<std::uint32_t>(bits));
    if (bits >> 32 != 0)
      atomicOr(&u.words[padded(word + 1)], static_cast<std::uint32_t>(bits >> 32));
  }
  pack_block(u.words, planes_at + planes_before, q, before, width, warp_widest, form, zero + centre,
             used >> 6 != 0);
  if (exceptional) write_exceptions(s, u, mask, exceptions, exception_maps_at, masks_at);
  return {at, false};
}

}  // namespace mpress::codec::szp::cuda
