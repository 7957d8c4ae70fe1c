// Packing one block of 32 quanta, which a thread holds in registers: residuals, and their bit planes.
#pragma once

#include "codec/szp/cuda_unit.cuh"

namespace mpress::codec::szp::cuda {

/// A block's stored residuals: r_i = q_i + last * q_(i-1) + second * q_(i-2) + third * q_(i-3) +
/// shift.
template <class I>
struct Prediction {
  std::make_unsigned_t<I> last, second, third, shift;
};

/// `centre`: as quanta are kept.
template <class I>
__device__ __forceinline__ Prediction<I> prediction_of(std::uint32_t width, std::uint32_t form,
                                                       I centre) {
  using U = std::make_unsigned_t<I>;
  // A byte for each order, in the order of forms: 1, 2, 0, 3.
  const unsigned at = form / 2 * 8;
  const auto weight = [&](std::uint32_t weights) {
    return static_cast<U>(static_cast<I>(static_cast<std::int8_t>(weights >> at)));
  };
  return {weight(0xFD00FEFF), weight(0x03000100), weight(0xFF000000),
          bias<U>(width, form) - (at == 16 ? static_cast<U>(centre) : U{0})};
}

/// Planes of residuals of at most `bits` bits, from word `at` on. Prediction is linear: it takes
/// words whose fields are quanta that overflow into each other to words whose fields are residuals,
/// which do not.
template <unsigned bits, class I>
__device__ __forceinline__ void pack_fields(std::uint32_t* words, unsigned at, const I (&q)[32],
                                            const I (&before)[3], std::uint32_t width,
                                            const Prediction<I>& p, bool third) {
  std::uint32_t w[bits + 3];
#pragma unroll
  for (unsigned k = 0; k < bits; ++k) {
    w[k + 3] = static_cast<std::uint32_t>(q[32 - bits + k]);
#pragma unroll
    for (unsigned i = 32 - bits; i > 0; i -= bits) {
      w[k + 3] = (w[k + 3] << bits) + static_cast<std::uint32_t>(q[i - bits + k]);
    }
  }
#pragma unroll
  for (unsigned i = 0; i < 3; ++i) {
    w[2 - i] = (w[bits + 2 - i] << bits) + static_cast<std::uint32_t>(before[i]);
  }
  const auto last = static_cast<std::uint32_t>(p.last);
  const auto second = static_cast<std::uint32_t>(p.second);
  const std::uint32_t shift = static_cast<std::uint32_t>(p.shift) * (~0u / ((1u << bits) - 1));
  std::uint32_t r[bits];
#pragma unroll
  for (unsigned k = 0; k < bits; ++k) r[k] = w[k + 3] + last * w[k + 2] + second * w[k + 1] + shift;
  if (third) {
#pragma unroll
    for (unsigned k = 0; k < bits; ++k) r[k] += static_cast<std::uint32_t>(p.third) * w[k];
  }
  std::uint32_t planes[bits > 8 ? bits / 8 : 1][bits > 8 ? 8 : bits];
  to_planes(r, planes);
  store_planes(words, at, 0, width, planes);
}

/// Residuals of a block, biased to be non-negative, as planes from word `at` on. `most`: the
/// greatest width in the warp.
template <class I>
__device__ __forceinline__ void pack_block(std::uint32_t* words, unsigned at, const I (&q)[32],
                                           const I (&before)[3], std::uint32_t width,
                                           std::uint32_t most, std::uint32_t form, I centre,
                                           bool third) {
  using U = std::make_unsigned_t<I>;
  const Prediction<I> p = prediction_of(width, form, centre);
  if (most <= 4) return pack_fields<4>(words, at, q, before, width, p, third);
  if (most <= 8) return pack_fields<8>(words, at, q, before, width, p, third);
  if (most <= 16) return pack_fields<16>(words, at, q, before, width, p, third);
  const auto quantum = [&](int i) { return static_cast<U>(i < 0 ? before[-1 - i] : q[i]); };
  U r[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    r[i] = quantum(i) + p.last * quantum(i - 1) + p.second * quantum(i - 2) +
           p.third * quantum(i - 3) + p.shift;
  }
  std::uint32_t part[32], planes[4][8];
#pragma unroll
  for (unsigned first = 0; first < 8 * sizeof(I); first += 32) {
    if (most <= first) break;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) part[i] = static_cast<std::uint32_t>(r[i] >> first);
    to_planes(part, planes);
    store_planes(words, at, first, width, planes);
  }
}

}  // namespace mpress::codec::szp::cuda
