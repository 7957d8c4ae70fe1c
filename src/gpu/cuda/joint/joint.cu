#include "gpu/cuda/joint/joint.hpp"

#include <algorithm>
#include <cstdint>

#include "gpu/cuda/combine.cuh"
#include "gpu/cuda/joint/patience.cuh"
#include "gpu/cuda/tell.cuh"
#include "gpu/joint.hpp"

namespace mpress::gpu {
namespace {

using codec::Combine;

constexpr unsigned threads = 512;
constexpr unsigned line_threads = 256;
constexpr unsigned most_line_blocks = 128;

/// A Joint as kernels have it.
struct Call {
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

/// Says once that something did not come in time.
__device__ void leave_undone(const Call& call) {
  *static_cast<volatile std::uint32_t*>(call.undone) = 1;
  __threadfence_system();
}

// What travels in lines: 8 bytes of data, each half beside the number of the call. Devices write
// and read 8 bytes at once, so whoever sees the number sees what is beside it.

struct Line {
  std::uint32_t data[2];
};

__device__ void store_line(std::byte* at, const Line& line, std::uint32_t number) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(at), "r"(line.data[0]),
               "r"(line.data[1]), "r"(number));
}

__device__ bool load_line(const std::byte* at, Line& line, std::uint32_t number) {
  std::uint32_t first, second;
  asm volatile("ld.volatile.global.v4.u32 {%0, %2, %1, %3}, [%4];"
               : "=r"(line.data[0]), "=r"(line.data[1]), "=r"(first), "=r"(second)
               : "l"(at));
  return first == number && second == number;
}

/// So many members' lines are on their way at once.
constexpr unsigned ahead = 4;

/// Lines of those of `ahead` members in a row that `wanted` has a bit of. False where one did not
/// come.
__device__ bool await_lines(const std::byte* first, std::size_t of_member, unsigned wanted,
                            Line (&lines)[ahead], const Call& call) {
  for (Patience patience(call.stop());;) {
    bool has_all = true;
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) {
      if ((wanted >> k & 1) == 0) continue;
      has_all = load_line(first + k * of_member, lines[k], call.number) && has_all;
    }
    if (has_all) return true;
    if (patience.is_over()) return false;
  }
}

/// The elements of line `i` of `count`, as far as there are any.
template <class T>
__device__ Line line_of(const T* elements, std::size_t count, std::size_t i) {
  Line line{};
  constexpr std::size_t lanes = sizeof line / sizeof(T);
  T lane[lanes] = {};
#pragma unroll
  for (std::size_t k = 0; k < lanes; ++k) {
    if (i * lanes + k < count) lane[k] = elements[i * lanes + k];
  }
  memcpy(&line, lane, sizeof line);
  return line;
}

/// The opposite.
template <class T>
__device__ void put_line(T* elements, std::size_t count, std::size_t i, const Line& line) {
  constexpr std::size_t lanes = sizeof line / sizeof(T);
  T lane[lanes];
  memcpy(lane, &line, sizeof line);
#pragma unroll
  for (std::size_t k = 0; k < lanes; ++k) {
    if (i * lanes + k < count) elements[i * lanes + k] = lane[k];
  }
}

/// Line `i` of each part to those who combine it. The own memory gets them, too: work that is given
/// again finds nothing else, where results lie in the input's place.
template <class T>
__device__ void contribute_line(const Call& call, std::size_t i) {
  constexpr std::size_t lanes = sizeof(Line) / sizeof(T);
  const auto* const input = static_cast<const T*>(call.input);
  for (unsigned begin = 1; begin <= call.members; begin += ahead) {
    Line lines[ahead];
    std::byte* to[ahead];
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) {
      const unsigned member = (call.own + begin + k) % call.members;
      const unsigned part = call.part_of(member);
      to[k] = nullptr;
      if (begin + k > call.members || !call.combines(member) || i * lanes >= call.count(part)) {
        continue;
      }
      to[k] = call.memory[member] + call.lines.contributions.at(call.own) + i * joint::line_bytes;
      lines[k] = line_of(input + call.begins[part], call.count(part), i);
    }
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) {
      if (to[k] != nullptr) store_line(to[k], lines[k], call.number);
    }
  }
}

/// Line `i` of the part that this member combines. False where one did not come.
template <Combine how, class T>
__device__ bool combine_line(const Call& call, std::size_t i, Line& result) {
  constexpr std::size_t lanes = sizeof(Line) / sizeof(T);
  const std::byte* const own = call.memory[call.own] + i * joint::line_bytes;
  T sums[lanes];
  for (unsigned member = 0; member < call.members; member += ahead) {
    const unsigned left = call.members - member;
    Line lines[ahead];
    if (!await_lines(own + call.lines.contributions.at(member), call.lines.contributions.of_member,
                     left < ahead ? (1u << left) - 1 : ~0u, lines, call)) {
      return false;
    }
#pragma unroll
    for (unsigned m = 0; m < ahead; ++m) {
      if (m >= left) continue;
      T lane[lanes];
      memcpy(lane, &lines[m], sizeof lane);
#pragma unroll
      for (std::size_t k = 0; k < lanes; ++k) {
        sums[k] = member + m == 0 ? lane[k] : codec::combine<how>(sums[k], lane[k]);
      }
    }
  }
  memcpy(&result, sums, sizeof result);
  return true;
}

/// Line `i` of the parts that others have combined. False where one did not come.
template <class T>
__device__ bool collect_line(const Call& call, std::size_t i) {
  constexpr std::size_t lanes = sizeof(Line) / sizeof(T);
  const std::byte* const own = call.memory[call.own] + i * joint::line_bytes;
  for (unsigned member = 0; member < call.members; member += ahead) {
    unsigned wanted = 0;
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) {
      const unsigned from = member + k;
      if (from < call.members && from != call.own && i * lanes < call.count(from)) {
        wanted |= 1u << k;
      }
    }
    Line lines[ahead];
    if (!await_lines(own + call.lines.results.at(member), call.lines.results.of_member, wanted,
                     lines, call)) {
      return false;
    }
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) {
      if ((wanted >> k & 1) == 0) continue;
      const unsigned from = member + k;
      put_line(static_cast<T*>(call.out) + call.begins[from], call.count(from), i, lines[k]);
    }
  }
  return true;
}

/// A thread has lines of the same numbers of all parts, so that what it brings of a line has been
/// read when the result takes its place.
template <Combine how, class T, bool gathers>
__global__ void __launch_bounds__(line_threads)
    lines_kernel(const __grid_constant__ Call call, const Tell tell) {
  constexpr std::size_t lanes = sizeof(Line) / sizeof(T);
  const std::size_t stride = std::size_t{gridDim.x} * line_threads;
  const std::size_t first = std::size_t{blockIdx.x} * line_threads + threadIdx.x;
  for (std::size_t i = first; i * lanes < call.longest && !call.again; i += stride) {
    contribute_line<T>(call, i);
  }
  bool has_all = true;
  if (call.combines(call.own)) {
    const unsigned part = call.part_of(call.own);
    T* const out = static_cast<T*>(call.out) + (gathers ? call.begins[part] : 0);
    for (std::size_t i = first; i * lanes < call.count(part) && has_all; i += stride) {
      Line line;
      has_all = combine_line<how, T>(call, i, line);
      if (!has_all) break;
      for (unsigned step = 1; step < call.members && gathers; ++step) {
        const unsigned member = (call.own + step) % call.members;
        store_line(call.memory[member] + call.lines.results.at(call.own) + i * joint::line_bytes,
                   line, call.number);
      }
      put_line(out, call.count(part), i, line);
    }
  }
  for (std::size_t i = first; i * lanes < call.longest && has_all && gathers; i += stride) {
    has_all = collect_line<T>(call, i);
  }
  if (!has_all) leave_undone(call);
  tell_if_last(tell, gridDim.x);
}

// What lies in its owner's memory, for others to read, and flags that tell of it.

/// By all threads of a block: tells the others that what they wait for is there.
__device__ void tell_members(const Call& call, unsigned wait, bool all) {
  __syncthreads();
  const unsigned member = threadIdx.x;
  if (member >= call.members || member == call.own || !(all || call.combines(member))) return;
  __threadfence_system();
  std::byte* const flag = call.memory[member] + joint::flag_at(wait, call.own, blockIdx.x);
  store_flag(flag, call.number);
}

/// By all threads of a block: have all others told?
__device__ bool await_members(const Call& call, unsigned wait) {
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
    long_kernel(const __grid_constant__ Call call, const Tell tell) {
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
  if (!has_all && threadIdx.x == 0) leave_undone(call);
  tell_if_last(tell, gridDim.x);
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(a),
             other = reinterpret_cast<std::uintptr_t>(b);
  return begin < other + b_bytes && other < begin + a_bytes;
}

template <Combine how, class T>
void launch(const Call& call, bool in_lines, std::size_t bytes, const Tell& tell,
            cudaStream_t stream) {
  if (!in_lines) {
    long_kernel<how, T><<<joint::blocks_for(bytes), threads, 0, stream>>>(call, tell);
    return;
  }
  const std::size_t lines =
      (call.longest * sizeof(T) + joint::line_payload - 1) / joint::line_payload;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::size_t>((lines + line_threads - 1) / line_threads, 1, most_line_blocks));
  const auto kernel = call.gathers ? lines_kernel<how, T, true> : lines_kernel<how, T, false>;
  kernel<<<blocks, line_threads, 0, stream>>>(call, tell);
}

template <class T>
cudaError_t combine_as(Combine how, Call& call, std::size_t parts, bool in_lines, const Tell& tell,
                       cudaStream_t stream) {
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
  Call call{};
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
