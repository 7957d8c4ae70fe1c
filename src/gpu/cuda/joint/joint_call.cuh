// What the kernels of CollectiveQueue::combine_jointly() have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/combine.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/cuda/tell.hpp"
#include "gpu/joint.hpp"

namespace mpress::gpu {

using codec::Combine;

/// A Joint as kernels have it.
struct CombineCall {
  std::byte* memory[joint::most_members];
  std::uint64_t begins[joint::most_members + 1];
  std::uint64_t longest;  ///< of the parts
  joint::TwoLines lines;
  std::size_t parts_at;
  const void* input;
  void* out;
  std::uint32_t* undone;
  std::uint32_t number;
  std::uint32_t combiners;
  unsigned members;
  unsigned own;
  bool has_parts;  ///< one for each member
  bool gathers;
  bool again;
  bool is_endless;
  bool reads_input;  ///< for what this member combines of its own; else what it has brought

  __device__ const std::uint32_t* stop() const { return is_endless ? undone : nullptr; }
  __device__ unsigned parts() const { return has_parts ? members : 1; }
  __device__ bool combines(unsigned member) const {
    return has_parts ? begins[member + 1] > begins[member] : (combiners >> member & 1) != 0;
  }
  /// Is it read where members bring it?
  __device__ bool is_read(unsigned part) const {
    if (has_parts) return part != own || !reads_input;
    return (combiners & ~(1u << own)) != 0 || !reads_input;
  }
  __device__ unsigned part_of(unsigned member) const { return has_parts ? member : 0; }
  __device__ std::size_t count(unsigned part) const { return begins[part + 1] - begins[part]; }
};

/// What travels in lines.
template <Combine how, class T>
void combine_in_lines(const CombineCall& call, const Tell& tell, cudaStream_t stream);

}  // namespace mpress::gpu
