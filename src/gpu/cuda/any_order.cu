// The kernel of reductions whose result does not depend on the order of the inputs.
#include <algorithm>

#include "codec/any_order.hpp"
#include "gpu/codec_queue.hpp"
#include "gpu/cuda/combine.hpp"
#include "gpu/cuda/tell.cuh"

namespace mpress::gpu {
namespace {

using codec::Combine;
namespace any_order = codec::any_order;
namespace szp = codec::szp;

struct Inputs {
  const void* at[CodecQueue::most_inputs];
  const void* const* all;  ///< of more; null: those above
  unsigned number;
};

constexpr unsigned threads = 256;

/// An element a thread, whose inputs are read twice where they are summed.
template <Combine how, bool on_grid, class T>
__global__ void __launch_bounds__(threads)
    combine_kernel(const __grid_constant__ Inputs inputs, T* out, std::size_t count, int room,
                   const szp::Quantizer<T> z, const Tell tell) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  const void* const* const at = inputs.all ? inputs.all : inputs.at;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride) {
    const auto load = [&](unsigned input) { return static_cast<const T*>(at[input])[i]; };
    if constexpr (how != Combine::sum) {
      T result = load(0);
      for (unsigned k = 0; k < inputs.number; ++k) {  // the first again: its NaNs become ours
        result = any_order::extreme<how>(result, load(k));
      }
      out[i] = result;
    } else if constexpr (on_grid) {
      out[i] = any_order::sum_on_grid<T>(inputs.number, room, z, load);
    } else {
      out[i] = any_order::sum<T>(inputs.number, room, load);
    }
  }
  tell_if_last(tell, gridDim.x);
}

template <class T>
cudaError_t combine_as(Combine how, const Inputs& inputs, void* out, std::size_t count,
                       const codec::Grid& grid, const Tell& tell, cudaStream_t stream) {
  constexpr std::size_t most_blocks = 8 * 132;  // as many as large devices have room for
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::size_t>((count + threads - 1) / threads, 1, most_blocks));
  szp::Quantizer<T> z{};
  const bool is_on_grid = grid.bound != 0 && szp::quantizer_of(grid, z);
  const int room = any_order::room_for(inputs.number);
  T* const to = static_cast<T*>(out);
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, threads, 0, stream>>>(inputs, to, count, room, z, tell);
    return cudaGetLastError();
  };
  switch (how) {
    case Combine::sum:
      return is_on_grid ? launch(combine_kernel<Combine::sum, true, T>)
                        : launch(combine_kernel<Combine::sum, false, T>);
    case Combine::min: return launch(combine_kernel<Combine::min, false, T>);
    case Combine::max: return launch(combine_kernel<Combine::max, false, T>);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t combine_in_any_order(Combine how, ElementType type, std::span<const void* const> inputs,
                                 const void* const* inputs_there, void* out, std::size_t count,
                                 const codec::Grid& grid, const Tell& tell, cudaStream_t stream) {
  if (inputs.empty()) return cudaErrorInvalidValue;
  Inputs all{};
  if (inputs.size() > CodecQueue::most_inputs) {
    all.all = inputs_there;
  } else {
    std::copy(inputs.begin(), inputs.end(), all.at);
  }
  all.number = static_cast<unsigned>(inputs.size());
  return type == ElementType::f32 ? combine_as<float>(how, all, out, count, grid, tell, stream)
                                  : combine_as<double>(how, all, out, count, grid, tell, stream);
}

}  // namespace mpress::gpu
