// Reductions of elements whose result does not depend on the order of what is reduced: the same
// arithmetic for host and device.
//
// A sum is pre-rounded: J. Demmel, H. D. Nguyen, Parallel Reproducible Summation, IEEE Transactions
// on Computers 64 (2015), with one bin for each element, as whoever adds sees all summands. From
// the largest magnitude m and the number N of summands comes an extractor M = 1.5 * 2^e, so that
// q = (x + M) - M is x rounded to a multiple of M's unit 2^(e - 52), and N such multiples add up
// without any rounding, whatever their order. What is left of each, x - q, is exact and at most
// half a unit; the next fold takes it with a smaller M. Three folds of f64 hold all down to
// about 2^-150 m, two of f32, in double precision, all down to 2^-100 m.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "codec/combine.hpp"
#include "codec/szp/format.hpp"
#include "codec/szp/rounding.hpp"

namespace mpress::codec::any_order {

#define MPRESS_ANY_ORDER MPRESS_HOST_DEVICE __attribute__((always_inline)) inline

template <class T>
using Bits = typename szp::Traits<T>::Bits;

template <class T>
inline constexpr Bits<T> sign_bit = Bits<T>{1} << (8 * sizeof(T) - 1);
template <class T>
inline constexpr Bits<T> infinity_bits =
    sizeof(T) == 4 ? static_cast<Bits<T>>(0x7F800000) : static_cast<Bits<T>>(0x7FF0000000000000);
template <class T>
inline constexpr Bits<T> nan_bits =
    sizeof(T) == 4 ? static_cast<Bits<T>>(0x7FC00000) : static_cast<Bits<T>>(0x7FF8000000000000);

template <class T>
MPRESS_ANY_ORDER Bits<T> bits_of(T x) {
  return __builtin_bit_cast(Bits<T>, x);
}

/// Bits of |x|, which are in the order of the magnitudes: NaNs beyond infinity.
template <class T>
MPRESS_ANY_ORDER Bits<T> magnitude_of(T x) {
  return bits_of(x) & ~sign_bit<T>;
}

/// Never part of a fused operation.
MPRESS_ANY_ORDER double add(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

template <class T>
MPRESS_ANY_ORDER T multiply(T a, T b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4) return __fmul_rn(a, b);
  if constexpr (sizeof(T) == 8) return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

template <class T>
inline constexpr int folds = sizeof(T) == 4 ? 2 : 3;

/// Bits for the sum of so many summands: ceil(log2(number)), and 2 at least, with which x + M has
/// the exponent of M.
MPRESS_ANY_ORDER int room_for(std::size_t number) {
  int room = 2;
  while ((std::size_t{1} << room) < number) ++room;
  return room;
}

/// How the summands of one element are taken apart.
struct Extractor {
  double scale, unscale;  ///< powers of two that keep all from overflow and underflow
  double first;           ///< of the first fold
};

/// Of the largest magnitude, as bits of T; room: at most 100.
template <class T>
MPRESS_ANY_ORDER Extractor extractor_of(Bits<T> most, int room) {
  constexpr std::uint64_t high = 1023 + 900, low = 1023 - 500;
  const auto m = static_cast<double>(__builtin_bit_cast(T, most));
  double scale = 1, unscale = 1;
  if constexpr (sizeof(T) == 8) {
    const std::uint64_t exponent = bits_of(m) >> 52;
    scale = exponent > high ? 0x1p-128 : exponent < low ? 0x1p500 : 1;
    unscale = exponent > high ? 0x1p128 : exponent < low ? 0x1p-500 : 1;
  }
  // m < 2^(exponent - 1022), and M = 1.5 * 2^(exponent - 1022 + room).
  const std::uint64_t exponent = bits_of(multiply(m, scale)) >> 52;
  const std::uint64_t first = (exponent + 1 + static_cast<std::uint64_t>(room)) << 52;
  return {scale, unscale, __builtin_bit_cast(double, first | std::uint64_t{1} << 51)};
}

/// From an extractor to that of the next fold.
MPRESS_ANY_ORDER double next_fold(int room) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(1023 + room - 53) << 52);
}

/// Adds the part of `x` that the extractor finds to `sum`, and leaves the rest.
MPRESS_ANY_ORDER void extract(double extractor, double& x, double& sum) {
  const double part = add(add(x, extractor), -extractor);
  sum = add(sum, part);
  x = add(x, -part);
}

/// Of the folds' sums, which are exact: their own sum, rounded as good as once.
template <class T>
MPRESS_ANY_ORDER T total(const double (&sums)[3], double unscale) {
  const double high = add(sums[0], sums[1]);
  const double back = add(high, -sums[0]);
  const double low = add(add(sums[0], -add(high, -back)), add(sums[1], -back));
  return static_cast<T>(multiply(add(high, add(low, sums[2])), unscale));
}

/// Of summands that are not all finite.
template <class T>
MPRESS_ANY_ORDER T sum_of_infinite(bool any_nan, bool any_plus, bool any_minus) {
  const bool is_nan = any_nan || (any_plus && any_minus);
  const Bits<T> infinity = infinity_bits<T> | (any_minus ? sign_bit<T> : 0);
  return __builtin_bit_cast(T, is_nan ? nan_bits<T> : infinity);
}

/// `load(i)` gives summand i < number, twice.
template <class T, class Load>
MPRESS_HOST_DEVICE T sum(unsigned number, int room, const Load& load) {
  Bits<T> most = 0;
  bool any_nan = false, any_plus = false, any_minus = false;
  for (unsigned i = 0; i < number; ++i) {
    const T x = load(i);
    const Bits<T> magnitude = magnitude_of(x);
    most = magnitude > most ? magnitude : most;
    any_nan |= magnitude > infinity_bits<T>;
    any_plus |= bits_of(x) == infinity_bits<T>;
    any_minus |= bits_of(x) == (infinity_bits<T> | sign_bit<T>);
  }
  if (most >= infinity_bits<T>) return sum_of_infinite<T>(any_nan, any_plus, any_minus);
  const Extractor with = extractor_of<T>(most, room);
  const double next = next_fold(room);
  double sums[3] = {};
  for (unsigned i = 0; i < number; ++i) {
    double x = multiply(static_cast<double>(load(i)), with.scale);
    double extractor = with.first;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int fold = 0; fold < folds<T>; ++fold) {
      extract(extractor, x, sums[fold]);
      extractor = multiply(extractor, next);
    }
  }
  return total<T>(sums, with.unscale);
}

/// The least and the greatest, of which -0 is below +0, and any NaN gives one and the same.
template <Combine how, class T>
MPRESS_ANY_ORDER T extreme(T a, T b) {
  if (a != a || b != b) return __builtin_bit_cast(T, nan_bits<T>);
  const bool a_is_below = a < b || (a == b && (bits_of(a) & sign_bit<T>) != 0);
  return a_is_below == (how == Combine::min) ? a : b;
}

/// szp's quantum of an element, as a number of its type: of what an encoder has quantised, and of
/// what decoders make of that, the encoder's. Those make another one of the elements that encoders
/// take no quantum of because of max_quantum alone: all of these come here. False: there is none.
template <class T>
MPRESS_ANY_ORDER bool quantum_of(const szp::Quantizer<T>& z, T x, T& quantum) {
  constexpr T most = szp::Traits<T>::max_quantum;
  T scaled = multiply(x, z.inverse);
  if (!(scaled >= -z.most && scaled <= z.most)) return false;
  const bool is_beyond = scaled < -most || scaled > most;
  if (is_beyond) scaled = scaled < 0 ? -most : most;
  T q = szp::round_quantum(scaled);
  T error = x - multiply(q, z.step);
  if (!(error < z.limit && error > -z.limit)) {
    q += error > 0 ? T(1) : T(-1);
    error = x - multiply(q, z.step);
    if (!(q >= -most && q <= most && error < z.limit && error > -z.limit)) return false;
  }
  // A slack may let what is a step away pass.
  if (is_beyond && !(error < z.step && error > -z.step)) return false;
  quantum = q;
  return true;
}

/// The quantum next to an element, fast: all of it where that needs no more looks. An element that
/// has none shows as one far away, or leaves bits in `strange` (szp::rounded()).
template <class T>
MPRESS_ANY_ORDER std::int32_t next_quantum(const szp::Quantizer<T>& z, T x,
                                           std::uint32_t& strange) {
  using Rounding = szp::Rounding<T>;
  const T shifted = multiply(x, z.inverse) + Rounding::magic;
  // Those far away do not come near by wrapping.
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(szp::rounded(shifted, strange)) -
                                   static_cast<std::uint32_t>(Rounding::zero));
}

/// How far either way, in quanta, next_quantum() is quantum_of()'s: up to `small` as it is, up to
/// `near` where is_near(). Negative: nowhere.
struct QuickReach {
  std::int32_t small, near;
};

/// Of quanta in [-most, most].
template <class T>
QuickReach quick_reach(const szp::Quantizer<T>& z, std::int32_t most) {
  const double within = std::min<double>(most, std::floor(static_cast<double>(z.most)) - 1);
  const double near = std::min<double>(within, szp::Traits<T>::max_quantum - 1);
  const bool are_finite = z.step <= szp::longest_step<T>;
  const double small = are_finite ? std::min<double>(near, szp::Rounding<T>::reach) : -1;
  return {static_cast<std::int32_t>(small), static_cast<std::int32_t>(near)};
}

/// Of a quantum next to `x`.
template <class T>
MPRESS_ANY_ORDER bool is_near(const szp::Quantizer<T>& z, T x, std::int32_t quantum) {
  const T error = x - multiply(static_cast<T>(quantum), z.step);
  return error < z.limit && error > -z.limit;
}

/// The sum of summands on szp's grid, be they elements or what was decoded: what decoding their
/// payloads' sum gives, where quanta tell it; else that of the values that they decode to.
template <class T, class Load>
MPRESS_HOST_DEVICE T sum_on_grid(unsigned number, int room, const szp::Quantizer<T>& z,
                                 const Load& load) {
  constexpr auto limit = static_cast<std::int64_t>(szp::Traits<T>::sum_limit);
  std::int64_t high = 0, low = 0;  // in two parts, as sums of many may take more than 64 bits
  bool are_quanta = true;
  for (unsigned i = 0; i < number && are_quanta; ++i) {
    T quantum = 0;
    are_quanta = quantum_of(z, load(i), quantum);
    const auto q = static_cast<std::int64_t>(quantum);
    high += q >> 32;
    low += q & 0xFFFFFFFF;
  }
  high += low >> 32;
  if (are_quanta && high >= -(limit >> 32) - 1 && high <= limit >> 32) {
    const std::int64_t q = high * (std::int64_t{1} << 32) + (low & 0xFFFFFFFF);
    if (q >= -limit && q < limit) return multiply(static_cast<T>(q), z.step);
  }
  return sum<T>(number, room, [&](unsigned i) {
    const T x = load(i);
    T q = 0;
    return quantum_of(z, x, q) ? multiply(q, z.step) : x;
  });
}

}  // namespace mpress::codec::any_order
