// Lines as kernels store and load them (gpu/lines.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/cuda/joint/await.cuh"
#include "gpu/lines.hpp"

namespace mpress::gpu {

struct PairedLine {
  static constexpr unsigned words = paired_payload / sizeof(std::uint32_t);
  static constexpr std::size_t bytes = line_bytes;

  std::uint32_t word[words];

  __device__ void store(std::byte* at, std::uint32_t number) const {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(at), "r"(word[0]),
                 "r"(word[1]), "r"(number));
  }

  /// Has it come?
  __device__ bool load(const std::byte* at, std::uint32_t number) {
    std::uint32_t first, second;
    asm volatile("ld.volatile.global.v4.u32 {%0, %2, %1, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(first), "=r"(second)
                 : "l"(at));
    return first == number && second == number;
  }
};

/// `lines` of them, which one thread works at.
template <unsigned lines>
struct DenseLine {
  static constexpr unsigned words_each = dense_payload / sizeof(std::uint32_t);
  static constexpr unsigned words = lines * words_each;
  static constexpr std::size_t bytes = lines * line_bytes;

  std::uint32_t word[words];

  __device__ void store(std::byte* at, std::uint32_t number) const {
#pragma unroll
    for (unsigned i = 0; i < lines; ++i) {
      const std::uint32_t* const from = word + i * words_each;
      asm volatile(
          "{\n\t"
          ".reg .b64 low, high;\n\t"
          ".reg .b128 line;\n\t"
          "mov.b64 low, {%1, %2};\n\t"
          "mov.b64 high, {%3, %4};\n\t"
          "mov.b128 line, {low, high};\n\t"
          "st.relaxed.sys.global.b128 [%0], line;\n\t"
          "}" ::"l"(at + i * line_bytes),
          "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(number));
    }
  }

  __device__ bool load(const std::byte* at, std::uint32_t number) {
    bool has_come = true;
#pragma unroll
    for (unsigned i = 0; i < lines; ++i) {
      std::uint32_t* const to = word + i * words_each;
      std::uint32_t found;
      asm volatile(
          "{\n\t"
          ".reg .b64 low, high;\n\t"
          ".reg .b128 line;\n\t"
          "ld.relaxed.sys.global.b128 line, [%4];\n\t"
          "mov.b128 {low, high}, line;\n\t"
          "mov.b64 {%0, %1}, low;\n\t"
          "mov.b64 {%2, %3}, high;\n\t"
          "}"
          : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(found)
          : "l"(at + i * line_bytes));
      has_come = has_come && found == number;
    }
    return has_come;
  }
};

// Kernels whose threads have a line each, and more where there are many.
constexpr unsigned line_threads = 256;
constexpr unsigned most_line_blocks = 128;

/// Thread blocks for so many lines.
constexpr unsigned line_blocks(std::size_t lines) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((lines + line_threads - 1) / line_threads, 1, most_line_blocks));
}

/// So many members' lines are on their way at once.
constexpr unsigned lines_ahead = 4;

/// The line at `first` of a member's and those at the same place of the next ones', of which
/// `wanted` has a bit. False where one did not come in time; `stop` as Timeout's.
template <class Line>
__device__ bool await_lines(const std::byte* first, std::size_t of_member, unsigned wanted,
                            std::uint32_t number, const std::uint32_t* stop,
                            Line (&lines)[lines_ahead]) {
  for (Timeout timeout(stop);;) {
    bool has_all = true;
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      if ((wanted >> k & 1) == 0) continue;
      has_all = lines[k].load(first + k * of_member, number) && has_all;
    }
    if (has_all) return true;
    if (timeout.is_over()) return false;
  }
}

}  // namespace mpress::gpu
