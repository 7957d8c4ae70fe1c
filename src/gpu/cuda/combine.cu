#include <algorithm>
#include <cstdint>

#include "gpu/codec_queue.hpp"
#include "gpu/cuda/combine.cuh"
#include "gpu/cuda/combine.hpp"
#include "gpu/cuda/tell.cuh"

namespace mpress::gpu {
namespace {

using codec::Combine;

struct Inputs {
  const void* at[CodecQueue::most_inputs];
  unsigned number;
};

constexpr unsigned threads = 256;

/// The inputs' packs number `i`.
template <Combine how, class Sum, class T, unsigned lanes>
__device__ __forceinline__ void combine_at(const Inputs& inputs, T* out, std::size_t i) {
  using Packed = Pack<T, lanes>;
  reinterpret_cast<Packed*>(out)[i] = combined<how, Sum, T, lanes>(
      inputs.number,
      [&](unsigned input) { return static_cast<const Packed*>(inputs.at[input])[i]; });
}

/// `packs` packs, and `rest` elements behind them one by one. Everything is read once, and `out`
/// behind all that lies in its place.
template <Combine how, class Sum, class T, unsigned lanes>
__global__ void __launch_bounds__(threads)
    combine_kernel(const __grid_constant__ Inputs inputs, T* out, std::size_t packs,
                   std::size_t rest, const Tell tell) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  const std::size_t begin = std::size_t{blockIdx.x} * threads + threadIdx.x;
  for (std::size_t i = begin; i < packs; i += stride) {
    combine_at<how, Sum, T, lanes>(inputs, out, i);
  }
  for (std::size_t i = begin; i < rest; i += stride) {
    combine_at<how, Sum, T, 1>(inputs, out, packs * lanes + i);
  }
  tell_if_last(tell, gridDim.x);
}

/// In packs of 16 bytes where all addresses allow that, and what is left one by one.
template <Combine how, class Sum, class T>
void launch(const Inputs& inputs, T* out, std::size_t count, const Tell& tell,
            cudaStream_t stream) {
  constexpr unsigned lanes = 16 / sizeof(T);
  constexpr std::size_t most_blocks = 8 * 132;  // as many as large devices have room for
  auto bits = reinterpret_cast<std::uintptr_t>(out);
  for (unsigned i = 0; i < inputs.number; ++i) {
    bits |= reinterpret_cast<std::uintptr_t>(inputs.at[i]);
  }
  const std::size_t packs = bits % 16 == 0 ? count / lanes : 0;
  const std::size_t rest = count - packs * lanes;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::size_t>((std::max(packs, rest) + threads - 1) / threads, 1, most_blocks));
  combine_kernel<how, Sum, T, lanes>
      <<<blocks, threads, 0, stream>>>(inputs, out, packs, rest, tell);
}

template <class T>
cudaError_t combine_as(Combine how, const Inputs& inputs, void* out, std::size_t count, bool wide,
                       const Tell& tell, cudaStream_t stream) {
  T* const to = static_cast<T*>(out);
  switch (how) {
    case Combine::sum:
      if (wide) {
        launch<Combine::sum, double>(inputs, to, count, tell, stream);
      } else {
        launch<Combine::sum, T>(inputs, to, count, tell, stream);
      }
      break;
    case Combine::min: launch<Combine::min, T>(inputs, to, count, tell, stream); break;
    case Combine::max: launch<Combine::max, T>(inputs, to, count, tell, stream); break;
    case Combine::prod: launch<Combine::prod, T>(inputs, to, count, tell, stream); break;
    case Combine::replace: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t combine_elements(Combine how, ElementType type, std::span<const void* const> inputs,
                             void* out, std::size_t count, bool wide, const Tell& tell,
                             cudaStream_t stream) {
  if (inputs.empty() || inputs.size() > CodecQueue::most_inputs) return cudaErrorInvalidValue;
  Inputs all{};
  std::copy(inputs.begin(), inputs.end(), all.at);
  all.number = static_cast<unsigned>(inputs.size());
  return type == ElementType::f32 ? combine_as<float>(how, all, out, count, wide, tell, stream)
                                  : combine_as<double>(how, all, out, count, wide, tell, stream);
}

}  // namespace mpress::gpu
