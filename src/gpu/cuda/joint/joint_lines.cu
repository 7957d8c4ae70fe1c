// What is combined in lines (gpu/lines.hpp): contributions go to those who combine them, and results
// to those who get them.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/cuda/joint/joint_call.cuh"
#include "gpu/cuda/joint/lines.cuh"
#include "gpu/cuda/tell.cuh"

namespace mpress::gpu {
namespace {

/// Elements of a line.
template <class T, class Line>
constexpr unsigned lanes_of = sizeof(Line) / sizeof(T);

/// The elements of line `i` of `count`, as far as there are any.
template <class Line, class T>
__device__ Line line_of(const T* elements, std::size_t count, std::size_t i) {
  constexpr unsigned lanes = lanes_of<T, Line>;
  Line line{};
  T lane[lanes] = {};
#pragma unroll
  for (unsigned k = 0; k < lanes; ++k) {
    if (i * lanes + k < count) lane[k] = elements[i * lanes + k];
  }
  memcpy(&line, lane, sizeof line);
  return line;
}

/// The opposite.
template <class Line, class T>
__device__ void put_line(T* elements, std::size_t count, std::size_t i, const Line& line) {
  constexpr unsigned lanes = lanes_of<T, Line>;
  T lane[lanes];
  memcpy(lane, &line, sizeof line);
#pragma unroll
  for (unsigned k = 0; k < lanes; ++k) {
    if (i * lanes + k < count) elements[i * lanes + k] = lane[k];
  }
}

/// Line `i` of each part to those who combine it. The own memory gets them, too: work that is given
/// again finds nothing else, where results lie in the input's place.
template <class Line, class T>
__device__ void contribute_line(const CombineCall& call, std::size_t i) {
  const auto* const input = static_cast<const T*>(call.input);
  for (unsigned begin = 1; begin <= call.members; begin += lines_ahead) {
    Line lines[lines_ahead];
    std::byte* to[lines_ahead];
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      const unsigned member = (call.own + begin + k) % call.members;
      const unsigned part = call.part_of(member);
      to[k] = nullptr;
      if (begin + k > call.members || !call.combines(member) ||
          i * lanes_of<T, Line> >= call.count(part)) {
        continue;
      }
      to[k] = call.memory[member] + call.lines.contributions.at(call.own) + i * Line::bytes;
      lines[k] = line_of<Line>(input + call.begins[part], call.count(part), i);
    }
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      if (to[k] != nullptr) lines[k].store(to[k], call.number);
    }
  }
}

/// Line `i` of the part that this member combines. False where one did not come.
template <Combine how, class T, class Line>
__device__ bool combine_line(const CombineCall& call, std::size_t i, Line& result) {
  constexpr unsigned lanes = lanes_of<T, Line>;
  const Lines& where = call.lines.contributions;
  const std::byte* const own = call.memory[call.own] + i * Line::bytes;
  T sums[lanes];
  for (unsigned member = 0; member < call.members; member += lines_ahead) {
    const unsigned left = call.members - member;
    Line lines[lines_ahead];
    if (!await_lines(own + where.at(member), where.of_member,
                     left < lines_ahead ? (1u << left) - 1 : ~0u, call.number, call.stop(),
                     lines)) {
      return false;
    }
#pragma unroll
    for (unsigned m = 0; m < lines_ahead; ++m) {
      if (m >= left) continue;
      T lane[lanes];
      memcpy(lane, &lines[m], sizeof lane);
#pragma unroll
      for (unsigned k = 0; k < lanes; ++k) {
        sums[k] = member + m == 0 ? lane[k] : codec::combine<how>(sums[k], lane[k]);
      }
    }
  }
  memcpy(&result, sums, sizeof result);
  return true;
}

/// Line `i` of the parts that others have combined. False where one did not come.
template <class Line, class T>
__device__ bool collect_line(const CombineCall& call, std::size_t i) {
  const Lines& where = call.lines.results;
  const std::byte* const own = call.memory[call.own] + i * Line::bytes;
  for (unsigned member = 0; member < call.members; member += lines_ahead) {
    unsigned wanted = 0;
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      const unsigned from = member + k;
      if (from < call.members && from != call.own && i * lanes_of<T, Line> < call.count(from)) {
        wanted |= 1u << k;
      }
    }
    Line lines[lines_ahead];
    if (!await_lines(own + where.at(member), where.of_member, wanted, call.number, call.stop(),
                     lines)) {
      return false;
    }
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      if ((wanted >> k & 1) == 0) continue;
      const unsigned from = member + k;
      put_line(static_cast<T*>(call.out) + call.begins[from], call.count(from), i, lines[k]);
    }
  }
  return true;
}

/// A thread has lines of the same numbers of all parts, so that what it brings of a line has been
/// read when the result takes its place.
template <Combine how, class T, class Line, bool gathers>
__global__ void __launch_bounds__(line_threads)
    lines_kernel(const __grid_constant__ CombineCall call, const Tell tell) {
  constexpr std::size_t lanes = lanes_of<T, Line>;
  const std::size_t stride = std::size_t{gridDim.x} * line_threads;
  const std::size_t first = std::size_t{blockIdx.x} * line_threads + threadIdx.x;
  for (std::size_t i = first; i * lanes < call.longest && !call.again; i += stride) {
    contribute_line<Line, T>(call, i);
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
        line.store(call.memory[member] + call.lines.results.at(call.own) + i * Line::bytes,
                   call.number);
      }
      put_line(out, call.count(part), i, line);
    }
  }
  for (std::size_t i = first; i * lanes < call.longest && has_all && gathers; i += stride) {
    has_all = collect_line<Line, T>(call, i);
  }
  if (!has_all) leave_undone(call.undone);
  tell_if_last(tell, gridDim.x);
}

template <Combine how, class T, class Line>
void launch(const CombineCall& call, const Tell& tell, cudaStream_t stream) {
  constexpr std::size_t lanes = lanes_of<T, Line>;
  const std::size_t lines = (call.longest + lanes - 1) / lanes;
  const auto kernel =
      call.gathers ? lines_kernel<how, T, Line, true> : lines_kernel<how, T, Line, false>;
  kernel<<<line_blocks(lines), line_threads, 0, stream>>>(call, tell);
}

/// A dense line has whole elements.
template <class T>
using Dense = DenseLine<sizeof(T) / sizeof(float)>;

}  // namespace

template <Combine how, class T>
void combine_in_lines(const CombineCall& call, const Tell& tell, cudaStream_t stream) {
  if (call.lines.are_dense) {
    launch<how, T, Dense<T>>(call, tell, stream);
  } else {
    launch<how, T, PairedLine>(call, tell, stream);
  }
}

#define MPRESS_COMBINE_IN_LINES(how)                                                            \
  template void combine_in_lines<how, float>(const CombineCall&, const Tell&, cudaStream_t);    \
  template void combine_in_lines<how, double>(const CombineCall&, const Tell&, cudaStream_t);
MPRESS_COMBINE_IN_LINES(Combine::sum)
MPRESS_COMBINE_IN_LINES(Combine::min)
MPRESS_COMBINE_IN_LINES(Combine::max)
MPRESS_COMBINE_IN_LINES(Combine::prod)
#undef MPRESS_COMBINE_IN_LINES

}  // namespace mpress::gpu
