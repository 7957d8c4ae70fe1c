// Unpacking one unit by one thread block: parse, unpack, predict, and for decoding scale. Every
// thread takes one block.
#pragma once

#include "codec/szp/cuda_unit.cuh"

namespace mpress::codec::szp::cuda {

/// How the state of prediction (the last quantum and its first two differences) behind some
/// residuals follows from that before them: an affine map, triangular. `orders` says how much of
/// the state the unit's forms need.
template <class U, unsigned orders>
struct StateMap {
  U last[4];   ///< of last, slope, bend, 1
  U slope[3];  ///< of slope, bend, 1
  U bend[2];   ///< of bend, 1

  /// This map behind `first`.
  __device__ __forceinline__ StateMap after(const StateMap& first) const {
    StateMap m{};
    m.last[0] = last[0] * first.last[0];
    m.last[3] = last[0] * first.last[3] + last[3];
    if constexpr (orders >= 2) {
      m.last[1] = last[0] * first.last[1] + last[1] * first.slope[0];
      m.last[3] += last[1] * first.slope[2];
      m.slope[0] = slope[0] * first.slope[0];
      m.slope[2] = slope[0] * first.slope[2] + slope[2];
    }
    if constexpr (orders >= 3) {
      m.last[2] = last[0] * first.last[2] + last[1] * first.slope[1] + last[2] * first.bend[0];
      m.last[3] += last[2] * first.bend[1];
      m.slope[1] = slope[0] * first.slope[1] + slope[1] * first.bend[0];
      m.slope[2] += slope[1] * first.bend[1];
      m.bend[0] = bend[0] * first.bend[0];
      m.bend[1] = bend[0] * first.bend[1] + bend[1];
    }
    return m;
  }

  __device__ __forceinline__ StateMap from_lane_before(unsigned distance) const {
    StateMap m{};
    m.last[0] = __shfl_up_sync(~0u, last[0], distance);
    m.last[3] = __shfl_up_sync(~0u, last[3], distance);
    if constexpr (orders >= 2) {
      m.last[1] = __shfl_up_sync(~0u, last[1], distance);
      m.slope[0] = __shfl_up_sync(~0u, slope[0], distance);
      m.slope[2] = __shfl_up_sync(~0u, slope[2], distance);
    }
    if constexpr (orders >= 3) {
      m.last[2] = __shfl_up_sync(~0u, last[2], distance);
      m.slope[1] = __shfl_up_sync(~0u, slope[1], distance);
      m.bend[0] = __shfl_up_sync(~0u, bend[0], distance);
      m.bend[1] = __shfl_up_sync(~0u, bend[1], distance);
    }
    return m;
  }
};

template <class U>
struct State {
  U last;
  U slope;
  U bend;

  template <unsigned orders>
  __device__ __forceinline__ State behind(const StateMap<U, orders>& m) const {
    State s{m.last[0] * last + m.last[3], 0, 0};
    if constexpr (orders >= 2) {
      s.last += m.last[1] * slope;
      s.slope = m.slope[0] * slope + m.slope[2];
    }
    if constexpr (orders >= 3) {
      s.last += m.last[2] * bend;
      s.slope += m.slope[1] * bend;
      s.bend = m.bend[0] * bend + m.bend[1];
    }
    return s;
  }
};

/// What the warps of a block tell each other.
template <class T>
struct UnpackShared {
  std::uint64_t maps[Shape<T>::warps][9];  ///< a StateMap a warp
  std::uint32_t totals[Shape<T>::warps];
};

template <class T>
struct DecodeShared {
  alignas(16) std::uint32_t words[Shape<T>::buffer];  ///< the unit's words, then its elements
  UnpackShared<T> unpack;
};

/// A unit in shared memory: word i of it is words[padded(first + i)].
struct StoredUnit {
  const std::uint32_t* words;
  unsigned first;
  unsigned end;

  __device__ __forceinline__ std::uint32_t operator[](unsigned i) const { return words[padded(i)]; }
  __device__ __forceinline__ std::uint32_t head() const { return (*this)[first]; }
};

/// Where a unit's sections are in its buffer, and what the thread's block needs of them.
template <class U>
struct Parsed {
  U origin;
  U centre;
  std::uint32_t used;
  std::uint32_t width;
  std::uint32_t form;
  bool coded;
  unsigned planes_at;   ///< of the block
  unsigned maps_at;     ///< of exceptions, 0: there are none
  std::uint32_t mask;   ///< the block's exceptional elements
  unsigned values_at;   ///< of the first one
  unsigned value_step;  ///< to the next, 0: all are the fill
};

/// Sum over the threads before this one; `total` that over all. A barrier is inside.
template <class T>
__device__ std::uint32_t sum_before(UnpackShared<T>& s, std::uint32_t value, bool& any,
                                    std::uint32_t& total) {
  const std::uint32_t scanned = scan_inclusive(value);
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 31) s.totals[warp] = scanned;
  any = __syncthreads_or(any) != 0;
  std::uint32_t before = scanned - value;
  total = 0;
  for (unsigned w = 0; w < Shape<T>::warps; ++w) {
    if (w < warp) before += s.totals[w];
    total += s.totals[w];
  }
  return before;
}

/// Reads the sections of exceptions: at `maps_at`, and from `at` to the unit's end.
template <class T, class U>
__device__ bool parse_exceptions(UnpackShared<T>& s, StoredUnit unit, unsigned at, unsigned blocks,
                                 Parsed<U>& p) {
  const unsigned map_words = (blocks + 31) / 32;
  const unsigned warp = threadIdx.x / 32;
  unsigned masked = 0;
  unsigned rank = 0;
  for (unsigned w = 0; w < map_words; ++w) {
    const std::uint32_t partial = unit[p.maps_at + w];
    if (w < warp) rank += __popc(partial);
    masked += __popc(partial);
    const std::uint32_t past = blocks - 32 * w < 32 ? ~0u << (blocks - 32 * w) : 0;
    if (((partial | unit[p.maps_at + map_words + w]) & past) != 0) return false;
  }
  if (at + masked > unit.end) return false;
  std::uint32_t values = 0;
  if (threadIdx.x < blocks) {
    const std::uint32_t partial = unit[p.maps_at + warp];
    const std::uint32_t listed = unit[p.maps_at + map_words + warp];
    const bool in_part = (partial >> (threadIdx.x % 32) & 1) != 0;
    const bool in_list = (listed >> (threadIdx.x % 32) & 1) != 0;
    p.values_at = p.maps_at + 2 * map_words;
    if (in_part) p.mask = unit[at + rank + __popc(partial & lane_mask_below())];
    if (in_list && !in_part) p.mask = ~0u;
    if (in_list && in_part) {
      values = __popc(p.mask);
      p.value_step = Shape<T>::element_words;
    }
  }
  __syncthreads();  // s.totals is used again
  std::uint32_t total = 0;
  bool none = false;
  const std::uint32_t before = sum_before(s, values, none, total);
  if (p.value_step != 0) p.values_at = at + masked + before * Shape<T>::element_words;
  return at + masked + total * Shape<T>::element_words == unit.end;
}

/// Finds the sections of a unit. False, for all threads, where it contradicts itself.
template <class T, class U>
__device__ __forceinline__ bool parse_unit(UnpackShared<T>& s, StoredUnit unit, unsigned blocks,
                                           Parsed<U>& p) {
  const std::uint32_t head = unit.head();
  unsigned at = unit.first + 1;
  const auto read = [&]() {
    U value = unit[at];
    if constexpr (sizeof(U) == 8) value |= std::uint64_t{unit[at + 1]} << 32;
    at += sizeof(U) / 4;
    return value;
  };
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  p = {};
  if ((head & has_origin) != 0) p.origin = read();
  if ((head & has_centre) != 0) p.centre = read();
  p.used = head >> forms_shift & 255;
  const std::uint32_t least = head & 63;
  const std::uint32_t bits = head >> code_bits_shift & 15;
  const std::uint32_t form_count = __popc(p.used);
  const unsigned map_words = (blocks + 31) / 32;
  bool bad = bits > 9;
  unsigned coded_blocks = p.used != 0 ? blocks : 0;
  unsigned rank = threadIdx.x;
  p.coded = p.used != 0 && threadIdx.x < blocks;
  if ((head & has_bitmap) != 0) {
    coded_blocks = 0;
    rank = 0;
    p.coded = false;
    for (unsigned w = 0; w < map_words; ++w) {
      const std::uint32_t map = unit[at + w];
      if (w < warp) rank += __popc(map);
      if (w == warp) {
        rank += __popc(map & lane_mask_below());
        p.coded = (map >> lane & 1) != 0;
      }
      coded_blocks += __popc(map);
      bad |= blocks - 32 * w < 32 && map >> (blocks - 32 * w) != 0;
    }
    at += map_words;
  }
  bad |= (form_count == 0) != (coded_blocks == 0);
  if (p.coded && !bad) {
    const unsigned bit = rank * bits;
    const unsigned code_word = at + bit / 32;
    const std::uint32_t code =
        __funnelshift_r(unit[code_word], unit[code_word + 1], bit % 32) & ((1u << bits) - 1);
    const std::uint32_t above = form_count == 1 ? code : code * (65536 / form_count + 1) >> 16;
    p.width = least + above;
    bad |= p.width > (sizeof(U) == 4 ? 32 : max_width);
    // The form of that rank.
    std::uint32_t left = p.used;
    for (std::uint32_t r = code - above * form_count; r > 0; --r) left &= left - 1;
    p.form = __ffs(left) - 1;
  }
  at += (coded_blocks * bits + 31) / 32;
  if ((head & has_exceptions) != 0) {
    p.maps_at = at;
    at += 2 * map_words + Shape<T>::element_words;
  }
  std::uint32_t planes = 0;
  const std::uint32_t before = sum_before(s, p.coded ? p.width : 0, bad, planes);
  p.planes_at = at + before;
  at += planes;
  if (bad || at > unit.end) return false;
  if (p.maps_at == 0) return at == unit.end;
  return __syncthreads_and(parse_exceptions(s, unit, at, blocks, p)) != 0;
}

/// Quanta from residuals: each block from nothing, then all from the state before them.
template <class T, class U, unsigned orders>
__device__ __forceinline__ void integrate(UnpackShared<T>& s, const Parsed<U>& p, U (&q)[32]) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t order = p.coded ? form_order(p.form) : 1;
  const U shift = (order == 0 ? p.centre : U{0}) - (p.coded ? bias<U>(p.width, p.form) : U{0});
  const U c1 = order;
  const U c2 = orders < 2 || order < 2 ? U{0} : order == 2 ? ~U{0} : static_cast<U>(-3);
  const U c3 = order == 3 ? 1 : 0;
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    U sum = q[i] + shift;
    if (orders >= 3 && i >= 3) sum += c3 * q[i - 3];
    if (orders >= 2 && i >= 2) sum += c2 * q[i - 2];
    if (i >= 1) sum += c1 * q[i - 1];
    q[i] = sum;
  }
  StateMap<U, orders> m{};
  m.last[0] = order != 0 ? 1 : 0;
  m.last[3] = q[31];
  if constexpr (orders >= 2) {
    m.last[1] = order >= 2 ? 32 : 0;
    m.slope[0] = order >= 2 ? 1 : 0;
    m.slope[2] = p.coded ? q[31] - q[30] : U{0};
  }
  if constexpr (orders >= 3) {
    m.last[2] = order == 3 ? 528 : 0;
    m.slope[1] = order == 3 ? 32 : 0;
    m.bend[0] = order == 3 ? 1 : 0;
    m.bend[1] = p.coded ? q[31] - 2 * q[30] + q[29] : U{0};
  }
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const StateMap<U, orders> first = m.from_lane_before(step);
    if (lane >= step) m = m.after(first);
  }
  auto* shared_maps = reinterpret_cast<StateMap<U, orders>*>(s.maps);
  static_assert(sizeof(StateMap<U, orders>) <= sizeof s.maps[0]);
  if (lane == 31) shared_maps[warp] = m;
  m = m.from_lane_before(1);
  __syncthreads();
  State<U> state{p.origin, 0, 0};
  for (unsigned w = 0; w < warp; ++w) state = state.behind(shared_maps[w]);
  if (lane > 0) state = state.behind(m);
  U last = order != 0 ? state.last : U{0};
  U slope = order >= 2 ? state.slope : U{0};
  const U bend = order == 3 ? state.bend : U{0};
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    if constexpr (orders >= 3) slope += bend;
    if constexpr (orders >= 2) last += slope;
    q[i] += last;
  }
}

/// The quanta of the thread's block. False, for all threads, where the unit contradicts itself;
/// else all have read it.
template <class T, class U>
__device__ __forceinline__ bool unpack_quanta(UnpackShared<T>& s, StoredUnit unit, unsigned blocks,
                                              Parsed<U>& p, U (&q)[32]) {
  if (!parse_unit(s, unit, blocks, p)) return false;
  const std::uint32_t width = p.coded ? p.width : 0;
  const std::uint32_t most = warp_max(width);
  const auto load = [&](std::uint32_t(&low)[32]) {
    if (most <= 8) {
      load_planes<1>(unit.words, p.planes_at, 0, width, low);
    } else if (most <= 16) {
      load_planes<2>(unit.words, p.planes_at, 0, width, low);
    } else {
      load_planes<4>(unit.words, p.planes_at, 0, width, low);
    }
  };
  if constexpr (sizeof(U) == 4) load(q);
  if constexpr (sizeof(U) == 8) {
    std::uint32_t r[32];
    load(r);
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) q[i] = r[i];
    load_planes<4>(unit.words, p.planes_at, 32, width, r);
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) q[i] |= std::uint64_t{r[i]} << 32;
  }
  constexpr std::uint32_t second = 3u << 2, third = 3u << 6;
  if (sizeof(U) == 8 || (p.used & third) != 0) {
    integrate<T, U, 3>(s, p, q);
  } else if ((p.used & second) != 0) {
    integrate<T, U, 2>(s, p, q);
  } else {
    integrate<T, U, 1>(s, p, q);
  }
  return true;
}

/// Replaces the unit, whose words begin s.words, by its elements, as rows. `in` is the unit in the
/// payload.
template <class T, class U>
__device__ __forceinline__ bool unpack_as(DecodeShared<T>& s, T step, const std::uint32_t* in,
                                          unsigned words, unsigned blocks) {
  Parsed<U> p;
  U q[32];
  if (!unpack_quanta(s.unpack, {s.words, 0, words}, blocks, p, q)) return false;
  auto* row = reinterpret_cast<T*>(s.words + threadIdx.x * Shape<T>::row);
  constexpr unsigned chunk = 16 / sizeof(T);
#pragma unroll
  for (unsigned i = 0; i < 32; i += chunk) {
    alignas(16) T x[chunk];
#pragma unroll
    for (unsigned k = 0; k < chunk; ++k) {
      x[k] = static_cast<T>(static_cast<std::make_signed_t<U>>(q[i + k])) * step;
    }
    *reinterpret_cast<uint4*>(row + i) = *reinterpret_cast<const uint4*>(x);
  }
  // Only this thread writes the row, and the words are found in the payload again.
  for (unsigned at = p.values_at; p.mask != 0; p.mask &= p.mask - 1, at += p.value_step) {
    auto* element = reinterpret_cast<std::uint32_t*>(row + __ffs(p.mask) - 1);
    for (unsigned k = 0; k < Shape<T>::element_words; ++k) element[k] = in[at + k];
  }
  return true;
}

__device__ __noinline__ inline bool unpack_wide(DecodeShared<double>& s, double step,
                                                const std::uint32_t* in, unsigned words,
                                                unsigned blocks) {
  return unpack_as<double, std::uint64_t>(s, step, in, words, blocks);
}

/// The same for any coded unit of 1 or more words. Needs a barrier before and behind it.
template <class T>
__device__ __forceinline__ bool unpack_unit(DecodeShared<T>& s, T step, const std::uint32_t* in,
                                            unsigned words, unsigned blocks) {
  const std::uint32_t head = s.words[0];
  if ((head & ~known_head) != 0) return false;
  if ((head & is_wide) != 0) {
    if constexpr (sizeof(T) == 4) return false;
    if constexpr (sizeof(T) == 8) return unpack_wide(s, step, in, words, blocks);
  }
  return unpack_as<T, std::uint32_t>(s, step, in, words, blocks);
}

}  // namespace mpress::codec::szp::cuda
