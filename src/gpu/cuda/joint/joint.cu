#include "gpu/cuda/joint/joint.hpp"

#include <algorithm>
#include <cstdint>

#include "gpu/cuda/combine.cuh"
#include "gpu/cuda/joint/await.cuh"
#include "gpu/cuda/joint/joint_call.cuh"
#include "gpu/cuda/tell.cuh"
#include "gpu/joint.hpp"

namespace mpress::gpu {
namespace {

constexpr unsigned threads = 512;

// What lies in its owner's memory, for others to read, and flags that tell of it.

/// By all threads of a block: tells the others that what they wait for is there.
__device__ void tell_members(const CombineCall& call, unsigned wait, bool all) {
  __syncthreads();
  const unsigned member = threadIdx.x;
  if (member >= call.members || member == call.own || !(all || call.combines(member))) return;
  __threadfence_system();
  std::byte* const flag = call.memory[member] + joint::flag_at(wait, call.own, blockIdx.x);
  store_flag(flag, call.number);
}

/// By all threads of a block: have all others told?
__device__ bool await_members(const CombineCall& call, unsigned wait) {
  bool has_come = true;
  const unsigned member = threadIdx.x;
  if (member < call.members && member != call.own) {
    const std::byte* const flag = call.memory[call.own] + joint::flag_at(wait, member, blockIdx.x);
    has_come = await_flag(flag, call.number, call.stop());
  }
  return __syncthreads_and(has_come);
}

/// Others' memory changes during a kernel: past the cache that does not see that.
template <class Packed>
__device__ Packed load_shared(const void* packs, std::size_t i) {
  Packed pack;
  if constexpr (sizeof(Packed) == 16) {
    const uint4 bits = __ldcg(static_cast<const uint4*>(packs) + i);
    memcpy(&pack, &bits, sizeof pack);
  } else if constexpr (sizeof(Packed) == 8) {
    const uint2 bits = __ldcg(static_cast<const uint2*>(packs) + i);
    memcpy(&pack, &bits, sizeof pack);
  } else {
    const unsigned bits = __ldcg(static_cast<const unsigned*>(packs) + i);
    memcpy(&pack, &bits, sizeof pack);
  }
  return pack;
}

__device__ bool are_aligned(const void* a, const void* b) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
}

/// do_pack(i) for all whole packs of `count` elements, if `in_packs`, and do_one(i) for the
/// elements left.
template <class T, class DoPack, class DoOne>
__device__ void for_each(std::size_t count, bool in_packs, DoPack do_pack, DoOne do_one) {
  constexpr std::size_t lanes = 16 / sizeof(T);
  const std::size_t packs = in_packs ? count / lanes : 0;
#pragma unroll 4
  for (std::size_t i = threadIdx.x; i < packs; i += threads) do_pack(i);
  for (std::size_t i = packs * lanes + threadIdx.x; i < count; i += threads) do_one(i);
}

template <class T>
__device__ void copy_elements(T* to, const T* from, std::size_t count) {
  using Packed = Pack<T, 16 / sizeof(T)>;
  for_each<T>(
      count, are_aligned(to, from),
      [&](std::size_t i) { reinterpret_cast<Packed*>(to)[i] = load_shared<Packed>(from, i); },
      [&](std::size_t i) {
        reinterpret_cast<Pack<T, 1>*>(to)[i] = load_shared<Pack<T, 1>>(from, i);
      });
}

/// A block's share of a part.
struct Share {
  std::size_t begin;  ///< in the part
  std::size_t count;
};

template <class T>
__device__ Share share_of(std::size_t count) {
  const std::size_t begin = joint::share_at(count, sizeof(T), gridDim.x, blockIdx.x);
  return {begin, joint::share_at(count, sizeof(T), gridDim.x, blockIdx.x + 1) - begin};
}

template <Combine how, class T>
__global__ void __launch_bounds__(threads)
    long_kernel(const __grid_constant__ CombineCall call, const Tell tell) {
  using Packed = Pack<T, 16 / sizeof(T)>;
  const auto* const input = static_cast<const T*>(call.input);
  auto* const out = static_cast<T*>(call.out);
  const unsigned own_part = call.part_of(call.own);
  std::size_t at = call.parts_at, own_at = call.parts_at;
  for (unsigned part = 0; part < call.parts(); ++part) {
    const Share share = share_of<T>(call.count(part));
    if (part == own_part) own_at = at;
    if (!call.again && call.is_read(part)) {
      copy_elements(reinterpret_cast<T*>(call.memory[call.own] + at) + share.begin,
                    input + call.begins[part] + share.begin, share.count);
    }
    at += joint::aligned(call.count(part) * sizeof(T));
  }
  tell_members(call, 0, false);
  bool has_all = true;
  const std::size_t sums_at = at;
  if (call.combines(call.own)) {
    has_all = await_members(call, 0);
    const Share share = share_of<T>(call.count(own_part));
    const std::size_t inputs_at = own_at + share.begin * sizeof(T);
    T* const result = out + (call.gathers ? call.begins[own_part] : 0) + share.begin;
    T* const sums = reinterpret_cast<T*>(call.memory[call.own] + sums_at) + share.begin;
    const void* const own =
        call.reads_input ? static_cast<const void*>(input + call.begins[own_part] + share.begin)
                         : call.memory[call.own] + inputs_at;
    const auto combine = [&]<class P>(std::size_t i, const P*) {
      constexpr unsigned lanes = sizeof(P) / sizeof(T);
      const P pack = combined<how, T, T, lanes>(call.members, [&](unsigned member) {
        return load_shared<P>(member == call.own ? own : call.memory[member] + inputs_at, i);
      });
      reinterpret_cast<P*>(result)[i] = pack;
      if (call.gathers) reinterpret_cast<P*>(sums)[i] = pack;
    };
    for_each<T>(
        has_all ? share.count : 0, are_aligned(result, result),
        [&](std::size_t i) { combine(i, static_cast<const Packed*>(nullptr)); },
        [&](std::size_t i) { combine(i, static_cast<const Pack<T, 1>*>(nullptr)); });
  }
  if (call.gathers) {
    if (has_all) {
      tell_members(call, 1, true);
      has_all = await_members(call, 1);
    }
    for (unsigned step = 1; step < call.members && has_all; ++step) {
      const unsigned member = (call.own + step) % call.members;
      const Share share = share_of<T>(call.count(member));
      copy_elements(out + call.begins[member] + share.begin,
                    reinterpret_cast<const T*>(call.memory[member] + sums_at) + share.begin,
                    share.count);
    }
  }
  if (!has_all && threadIdx.x == 0) leave_undone(call.undone);
  tell_if_last(tell, gridDim.x);
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(a),
             other = reinterpret_cast<std::uintptr_t>(b);
  return begin < other + b_bytes && other < begin + a_bytes;
}

template <Combine how, class T>
void launch(const CombineCall& call, bool in_lines, std::size_t bytes, const Tell& tell,
            cudaStream_t stream) {
  if (in_lines) {
    combine_in_lines<how, T>(call, tell, stream);
  } else {
    long_kernel<how, T><<<joint::blocks_for(bytes), threads, 0, stream>>>(call, tell);
  }
}

template <class T>
cudaError_t combine_as(Combine how, CombineCall& call, std::size_t parts, bool in_lines,
                       const Tell& tell, cudaStream_t stream) {
  const std::size_t bytes = call.begins[parts] * sizeof(T);
  const std::size_t part = call.has_parts ? call.own : 0;
  const std::size_t out_bytes =
      call.gathers ? bytes : (call.begins[part + 1] - call.begins[part]) * sizeof(T);
  const auto own = reinterpret_cast<std::uintptr_t>(call.input) + call.begins[part] * sizeof(T);
  // Work that is given again finds results in the input's place.
  call.reads_input = own % 16 == 0 && !overlap(call.input, bytes, call.out, out_bytes);
  switch (how) {
    case Combine::sum: launch<Combine::sum, T>(call, in_lines, bytes, tell, stream); break;
    case Combine::min: launch<Combine::min, T>(call, in_lines, bytes, tell, stream); break;
    case Combine::max: launch<Combine::max, T>(call, in_lines, bytes, tell, stream); break;
    case Combine::prod: launch<Combine::prod, T>(call, in_lines, bytes, tell, stream); break;
    case Combine::replace: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t combine_jointly(Combine how, ElementType type, const Joint& joint,
                            std::uint32_t* undone, const Tell& tell, cudaStream_t stream) {
  const std::size_t members = joint.memory.size();
  const std::size_t parts = joint.begins.size() - 1;
  if (members < 2 || members > joint::most_members || (parts != 1 && parts != members)) {
    return cudaErrorInvalidValue;
  }
  CombineCall call{};
  std::copy(joint.memory.begin(), joint.memory.end(), call.memory);
  std::copy(joint.begins.begin(), joint.begins.end(), call.begins);
  call.input = joint.input;
  call.out = joint.out;
  call.undone = undone;
  call.number = joint.call;
  call.combiners = joint.combiners;
  call.members = static_cast<unsigned>(members);
  call.own = joint.member;
  call.has_parts = parts > 1;
  call.gathers = joint.gathers;
  call.again = joint.again;
  call.is_endless = joint.is_endless;
  for (std::size_t part = 0; part < parts; ++part) {
    call.longest = std::max(call.longest, joint.begins[part + 1] - joint.begins[part]);
  }
  call.lines = joint::lines_for(call.members, call.longest * element_size(type), joint.gathers);
  call.parts_at = joint::parts_at(call.members, joint.has_long_lines);
  return type == ElementType::f32
             ? combine_as<float>(how, call, parts, joint.in_lines, tell, stream)
             : combine_as<double>(how, call, parts, joint.in_lines, tell, stream);
}

}  // namespace mpress::gpu
