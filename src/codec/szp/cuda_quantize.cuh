// How kernels round elements, which lie in rows of a block each, to quanta.
#pragma once

#include <cstdint>

#include "codec/szp/cuda_unit.cuh"
#include "codec/szp/rounding.hpp"

namespace mpress::codec::szp::cuda {

template <class T>
__device__ const T* row_of(const std::uint32_t* rows, unsigned block) {
  return reinterpret_cast<const T*>(rows + block * Shape<T>::row);
}

/// See rounded().
template <class T>
__device__ __forceinline__ std::int32_t quantize_fast(const Quantizer<T>& z, T x,
                                                      std::uint32_t& strange) {
  return rounded(x * z.inverse + Rounding<T>::magic, strange);
}

}  // namespace mpress::codec::szp::cuda
