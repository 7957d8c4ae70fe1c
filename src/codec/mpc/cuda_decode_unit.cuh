// Decoding one unit that lies in shared memory, and where its elements go.
#pragma once

#include "codec/mpc/cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

/// Reads beyond a unit's end, of what is masked later.
inline constexpr unsigned coded_slack = 16 + 80;

/// What the warps of a block tell each other, of one unit.
template <class Word>
struct Totals {
  std::uint32_t widths[unit_warps<Word>];
  Word residuals[unit_warps<Word>];  ///< orders 1 and 2: of the last order's differences
  Word values[unit_warps<Word>];     ///< order 2: of their sums
};

// ---- Output -----------------------------------------------------------------------------------

template <class Word>
using ElementOf = std::conditional_t<sizeof(Word) == 4, float, double>;

template <class T>
__device__ T combined(Combine combine, T have, T value) {
  if (combine == Combine::sum) return have + value;
  if (combine == Combine::prod) return have * value;
  if (isnan(have) || isnan(value)) return have + value;
  return combine == Combine::min ? min(have, value) : max(have, value);
}

template <class Word>
__device__ Word combine_words(Combine combine, Word have, Word value) {
  if constexpr (sizeof(Word) == 4) {
    return __float_as_uint(combined(combine, __uint_as_float(have), __uint_as_float(value)));
  } else {
    return static_cast<Word>(
        __double_as_longlong(combined(combine, __longlong_as_double(static_cast<long long>(have)),
                                      __longlong_as_double(static_cast<long long>(value)))));
  }
}

/// Where elements go, and what becomes of those that are there.
template <class Word, bool combining>
struct Output {
  Combine combine;
  unsigned dim;
  bool aligned;  // to 16 bytes

  __device__ void put(Word* to, Word value) const {
    if constexpr (combining) value = combine_words(combine, *to, value);
    *to = value;
  }
  /// 16 bytes of elements.
  __device__ void put(uint4* to, const Word* values) const {
    constexpr unsigned each = 16 / sizeof(Word);
    alignas(16) Word v[each];
#pragma unroll
    for (unsigned i = 0; i < each; ++i) v[i] = values[i];
    if constexpr (combining) {
      alignas(16) Word have[each];
      *reinterpret_cast<uint4*>(have) = *to;
#pragma unroll
      for (unsigned i = 0; i < each; ++i) v[i] = combine_words(combine, have[i], v[i]);
    }
    *to = *reinterpret_cast<const uint4*>(v);
  }
  /// A unit's n elements; `value(i)` gives the i-th after de-interleaving.
  template <class Value>
  __device__ void put_unit(Word* to, unsigned n, Value value) const {
    const Interleaving order(n, dim);
    for (unsigned i = threadIdx.x; i < n; i += unit_threads<Word>) {
      put(to + i, value(dim == 1 ? i : order.place(i)));
    }
  }
};

// ---- Unit -------------------------------------------------------------------------------------

__device__ inline unsigned byte_at(const std::uint32_t* words, unsigned byte) {
  return reinterpret_cast<const unsigned char*>(words)[byte];
}

/// The planes of a thread's block at `byte`, back to residuals below planes of something else.
/// `narrow`, the same for a warp: no width is above 8.
template <class Word>
__device__ void unpack_block(const std::uint32_t* unit, unsigned byte, bool narrow,
                             Word (&residual)[kBlock]) {
  const std::uint32_t* const words = unit + byte / 4;
  const unsigned skip = byte % 4 * 8;
  std::uint32_t low = words[0];
  if (narrow) {
    const std::uint32_t middle = words[1];
    const std::uint64_t bytes =
        transpose_bits(__funnelshift_r(low, middle, skip) |
                       std::uint64_t{__funnelshift_r(middle, words[2], skip)} << 32);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) residual[i] = bytes >> (8 * i) & 0xFF;
    return;
  }
#pragma unroll
  for (unsigned part = 0; part < word_parts<Word>; ++part) {
    std::uint32_t planes[8], r[8];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint32_t high = words[8 * part + i + 1];
      planes[i] = __funnelshift_r(low, high, skip);
      low = high;
    }
    from_planes(planes, r);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      residual[i] = part == 0 ? r[i] : residual[i] | Word{r[i]} << (32 * part % Layout<Word>::bits);
    }
  }
}

/// Undoes order 1 or 2 for the whole unit: residuals, with `mask`, to ordered integers.
template <class Word>
__device__ void integrate(Totals<Word>& totals, unsigned order, Word seed, Word mask,
                          Word (&x)[kBlock]) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Word sum = 0, sums = 0;  // of the thread's differences, and of their sums
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    // unzigzag() of what the mask leaves.
    sum += (x[i] >> 1 & mask >> 1) ^ (Word{0} - (x[i] & mask & 1));
    x[i] = sum;
    sums += sum;
  }
  Word d = sum, v = sums;
  if (order == 1) {
    d = sum_lanes(sum);
    if (lane == 31) totals.residuals[warp] = d;
  } else {
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const Word d_before = __shfl_up_sync(all_lanes, d, step);
      const Word v_before = __shfl_up_sync(all_lanes, v, step);
      if (lane >= step) {
        v += v_before + kBlock * step * d_before;
        d += d_before;
      }
    }
    if (lane == 31) {
      totals.residuals[warp] = d;
      totals.values[warp] = v;
    }
  }
  __syncthreads();
  if (order == 1) {
    Word start = seed + d - sum;
#pragma unroll
    for (unsigned w = 0; w + 1 < unit_warps<Word>; ++w) {
      if (w < warp) start += totals.residuals[w];
    }
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] += start;
    return;
  }
  Word slope = 0, start = seed;  // before the warp
#pragma unroll
  for (unsigned w = 0; w + 1 < unit_warps<Word>; ++w) {
    if (w < warp) {
      start += totals.values[w] + 32 * kBlock * slope;
      slope += totals.residuals[w];
    }
  }
  // Before the thread.
  const Word d_own = d - sum;
  start += v - sums - kBlock * d_own + lane * kBlock * slope;
  slope += d_own;
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    start += x[i] + slope;
    x[i] = start;
  }
}

/// from_ordered() in fewer instructions.
template <class Word>
__device__ Word element_of(Word ordered, Scale<Word> scale) {
  if constexpr (sizeof(Word) == 4) {
    const std::uint32_t above =
        ordered ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(ordered) >> 31);
    const std::uint32_t unit = 1u << scale.shift;
    const std::uint32_t magnitude = min(above, 1u) * (scale.gap * unit) + above * unit;
    return magnitude | (ordered & Layout<Word>::sign);
  } else {
    return from_ordered(ordered, scale);
  }
}

/// Decodes a unit of `words` words to n elements; false, for all threads, where it contradicts
/// itself. `shared` holds it, 4-byte aligned, and is overwritten.
template <class Word, bool combining>
__device__ bool decode_unit(std::uint32_t* unit, unsigned words, unsigned n, Totals<Word>& totals,
                            const Output<Word, combining>& output, Word* staging, Word* out) {
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned groups = (n + kGroup - 1) / kGroup;
  if (words == 0) {
    output.put_unit(out, n, [](unsigned) { return Word{0}; });
    return true;
  }
  if (words == n * word_parts<Word>) {
    output.put_unit(out, n, [&](unsigned i) { return load_element<Word>(unit, i); });
    return true;
  }
  const UnitWord word = unpack_unit_word(unit[0]);
  if (!valid_unit_word<Word>(word)) return false;
  const Scale<Word> scale = scale_of<Word>(word);
  const unsigned seed_words = word.order == 0 ? 0 : word_parts<Word>;
  const unsigned bytes = 4 * words;
  if (1 + seed_words > words) return false;
  const Word seed = seed_words == 0 ? 0 : load_element<Word>(unit + 1, 0);
  if (1 + seed_words == words) {
    if (seed_words == 0) return false;
    const Word value = from_ordered(seed, scale);
    output.put_unit(out, n, [&](unsigned) { return value; });
    return true;
  }

  const unsigned fields = 4 + 4 * seed_words;
  const unsigned tables = fields + groups;
  if (tables > bytes) return false;
  const unsigned field = lane < groups ? byte_at(unit, fields + lane) : 0;
  const unsigned size = table_bytes(field >> 6);
  const unsigned until = sum_lanes(size);
  const unsigned planes = tables + __shfl_sync(all_lanes, until, 31);
  if (__any_sync(all_lanes, code_to_width(field & 63) > Layout<Word>::bits)) return false;
  if (planes > bytes) return false;

  const unsigned group = __shfl_sync(all_lanes, field | (until - size) << 8, thread / kGroupBlocks);
  const unsigned kind = group >> 6 & 3;
  const unsigned table = tables + (group >> 8) + (lane >> 3 & 1);
  unsigned entry = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (i < table_bits(kind)) entry |= (byte_at(unit, table + 2 * i) >> lane % 8 & 1) << i;
  }
  const unsigned width =
      thread < groups * kGroupBlocks ? table_width(kind, code_to_width(group & 63), entry) : 0;
  unsigned offset = sum_lanes(width);
  if (lane == 31) totals.widths[warp] = offset;
  __syncthreads();
  const unsigned total = lane < unit_warps<Word> ? totals.widths[lane] : 0;
  const unsigned used = planes + warp_sum(total);
  if ((used + 3) / 4 != words) return false;
  offset += planes - width + warp_sum(lane < warp ? total : 0);

  Word x[kBlock];
  unpack_block<Word>(unit, offset, !__any_sync(all_lanes, width > 8), x);
  const Word mask = width == 0 ? 0 : ~Word{0} >> (Layout<Word>::bits - width);
  if (word.order == 0) {
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] = from_distance(x[i] & mask, scale);
  } else {
    integrate<Word>(totals, word.order, seed, mask, x);
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] = element_of(x[i], scale);
  }
  const unsigned first = thread * kBlock;
  if (output.dim == 1 && output.aligned && n == kUnit<Word>) {
    constexpr unsigned each = 16 / sizeof(Word);
#pragma unroll
    for (unsigned i = 0; i < kBlock; i += each) {
      output.put(reinterpret_cast<uint4*>(out + first + i), x + i);
    }
    return true;
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) staging[first + i] = x[i];
  __syncthreads();
  output.put_unit(out, n, [&](unsigned i) { return staging[i]; });
  return true;
}

}  // namespace mpress::codec::mpc::cuda
