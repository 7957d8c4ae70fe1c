// What decides how a unit is coded: its extent, the widths of its blocks in every order, the tables
// of its groups.
#pragma once

#include "codec/mpc/cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

/// What the warps of a block tell each other, of one unit.
struct Exchange {
  uint4 extents[8];
  uint2 planes[8];           ///< sums of the widths of orders 0 (low half), 1 (high half), 2
  std::uint32_t groups[16];  ///< bytes of planes (low half) and tables (high half)
};

// ---- Extent -----------------------------------------------------------------------------------

/// Magnitudes of a thread's elements in 32 bits, shifted left by 1.
struct Top {
  std::uint32_t least;  ///< of those that are not zero, less 1
  std::uint32_t largest;
};

__device__ inline void widen(Top& top, std::uint32_t bits) {
  const std::uint32_t twice = bits << 1;
  top.least = __viaddmin_u32(twice, ~0u, top.least);
  top.largest = max(top.largest, twice);
}
__device__ inline void widen(Top& top, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits), high = static_cast<std::uint32_t>(bits >> 32);
  const std::uint32_t twice = high << 1;
  top.least = min(top.least, (twice | min(low, 1u)) - 1);
  top.largest = max(top.largest, twice);
}

/// An extent with the exponents of `top`.
template <class Word>
__device__ Extent<Word> extent_of(Top top, Word any) {
  constexpr unsigned up = Layout<Word>::bits - 32;
  const Word least = top.least == ~0u ? ~Word{0} : ((Word{top.least} + 1) << up >> 1) - 1;
  return {least, Word{top.largest} << up >> 1, any};
}

template <class Word>
__device__ Extent<Word> unit_extent(Exchange& exchange, Top top, Word any) {
  top.least = warp_min(top.least);
  top.largest = warp_max(top.largest);
  auto low = warp_or(static_cast<std::uint32_t>(any));
  std::uint32_t high = 0;
  if constexpr (sizeof(Word) == 8) {
    high = warp_or(static_cast<std::uint32_t>(any >> 32));
  }
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) exchange.extents[threadIdx.x / 32] = {top.least, top.largest, low, high};
  __syncthreads();
  const uint4 e = exchange.extents[lane % unit_warps<Word>];
  top.least = warp_min(e.x);
  top.largest = warp_max(e.y);
  low = warp_or(e.z);
  if constexpr (sizeof(Word) == 4) return extent_of<Word>(top, low);
  high = warp_or(e.w);
  return extent_of<Word>(top, static_cast<Word>(std::uint64_t{high} << 32 | low));
}

// ---- Widths -----------------------------------------------------------------------------------

/// The width that a block's differences need after zigzag().
template <class Word>
struct Spread;

template <>
struct Spread<std::uint32_t> {
  std::int32_t least = 0, most = 0;
  __device__ void add(std::uint32_t d) {
    least = min(least, static_cast<std::int32_t>(d));
    most = max(most, static_cast<std::int32_t>(d));
  }
  __device__ unsigned width() const {
    const auto largest = static_cast<std::uint32_t>(max(most, ~least));
    return bit_width(largest << 1 | static_cast<std::uint32_t>(least) >> 31);
  }
};

template <>
struct Spread<std::uint64_t> {
  std::uint64_t any = 0;
  std::uint32_t signs = 0;
  __device__ void add(std::uint64_t d) {
    const auto high = static_cast<std::int32_t>(d >> 32);
    const auto sign = static_cast<std::int64_t>(high >> 31);
    any |= d ^ static_cast<std::uint64_t>(sign);
    signs |= static_cast<std::uint32_t>(high);
  }
  __device__ unsigned width() const { return bit_width(any << 1 | signs >> 31); }
};

template <class Word>
__device__ Word ordered_of(Word bits, Scale<Word> scale) {
  const Word magnitude = (bits & ~Layout<Word>::sign) >> scale.shift;
  if constexpr (sizeof(Word) == 4) {
    const auto above = static_cast<std::uint32_t>(__viaddmax_s32(
        static_cast<std::int32_t>(magnitude), -static_cast<std::int32_t>(scale.gap), 0));
    return above ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31);
  } else {
    const auto above = static_cast<std::int64_t>(magnitude - scale.gap);
    const auto sign = static_cast<std::int64_t>(bits) >> 63;
    return static_cast<Word>((above & ~(above >> 63)) ^ sign);
  }
}

/// How a thread's group is stored.
struct Group {
  std::uint32_t field;
  std::uint32_t table;   ///< bytes
  std::uint32_t planes;  ///< bytes, of all blocks
  std::uint32_t width;   ///< of this thread's block
  std::uint32_t entry;   ///< of this thread's block
};

/// As choose_table() of the host's kernels, for the two groups of a warp.
template <class Word>
__device__ Group choose_table(unsigned width) {
  const bool upper = threadIdx.x % 32 >= kGroupBlocks;
  const unsigned low_largest = warp_max(upper ? 0 : width);
  const unsigned high_largest = warp_max(upper ? width : 0);
  unsigned largest = upper ? high_largest : low_largest;
  unsigned code = largest;
  if constexpr (sizeof(Word) == 8) {
    code = width_to_code(largest);
    largest = code_to_width(code);
  }
  // As table_entry() and table_width() have it, for each kind.
  const unsigned narrower = largest - width;
  const unsigned entries[4] = {0, min(narrower, 3u), min(narrower, 7u),
                               width == 0 ? 15 : min(narrower, 14u)};
  const unsigned saves = width == 0 ? largest : entries[3];
  const unsigned packed = entries[1] | entries[2] << 10 | saves << 20;
  const unsigned low_saved = warp_sum(upper ? 0 : packed);
  const unsigned high_saved = warp_sum(upper ? packed : 0);
  const unsigned saved = upper ? high_saved : low_saved;
  const int sizes[4] = {0, 4 - static_cast<int>(saved & 0x3FF),
                        6 - static_cast<int>(saved >> 10 & 0x3FF),
                        8 - static_cast<int>(saved >> 20)};
  static_assert(table_bytes(1) == 4 && table_bytes(2) == 6 && table_bytes(3) == 8);
  const int best = min(min(sizes[0], sizes[1]), min(sizes[2], sizes[3]));
  Group g{code, 0, kGroupBlocks * largest + static_cast<unsigned>(best), largest, 0};
#pragma unroll
  for (unsigned kind = 3; kind > 0; --kind) {
    // The first of the best.
    if (sizes[kind] == best && best < 0) {
      g.field = code | kind << 6;
      g.table = table_bytes(kind);
      g.entry = entries[kind];
      g.width = largest - (kind == 3 ? saves : entries[kind]);
    }
  }
  g.planes -= g.table;
  return g;
}

}  // namespace mpress::codec::mpc::cuda
