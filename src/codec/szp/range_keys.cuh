// How devices look for the range of finite elements: as integers that grow with them.
#pragma once

#include "codec/szp/format.hpp"

namespace mpress::codec::szp::cuda {

/// Least and greatest finite element as integers that grow with the element, the least
/// complemented: both are maxima, 0 while there are none.
struct RangeKeys {
  unsigned long long least;
  unsigned long long greatest;
};

template <class T>
__device__ typename Traits<T>::Bits key_of(typename Traits<T>::Bits bits) {
  using Bits = typename Traits<T>::Bits;
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

template <class T>
__device__ double value_of(unsigned long long key) {
  using Bits = typename Traits<T>::Bits;
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  const auto bits = static_cast<Bits>(key);
  return static_cast<double>(
      __builtin_bit_cast(T, (bits & sign) != 0 ? bits ^ sign : static_cast<Bits>(~bits)));
}

}  // namespace mpress::codec::szp::cuda
