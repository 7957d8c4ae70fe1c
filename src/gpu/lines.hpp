// Lines of 16 bytes, which carry data and tell by themselves that it is there: the number of the
// call that they belong to comes with it. Who waits for them needs no flag, and who stores them no
// fence. In memory that kernels of several members share; the same in all processes.
//
// Paired ones have 8 bytes of data, each half beside the number: all memory is read and written 8
// bytes at once. Dense ones have 12 beside one number: memory of devices alone, which is read and
// written 16 bytes at once (PTX: ld and st of .b128, .relaxed.sys).
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE

namespace mpress::gpu {

inline constexpr std::size_t line_bytes = 16;
inline constexpr std::size_t paired_payload = 8;
inline constexpr std::size_t dense_payload = 12;

/// Room for `bytes` bytes in paired lines, or in dense ones, of which doubles take two at a time.
MPRESS_HOST_DEVICE constexpr std::size_t paired_bytes(std::size_t bytes) {
  return (bytes / paired_payload + 1) * line_bytes;
}
MPRESS_HOST_DEVICE constexpr std::size_t dense_bytes(std::size_t bytes) {
  return (bytes / (2 * dense_payload) + 1) * 2 * line_bytes;
}

/// Where each member's lines come, in a member's memory.
struct Lines {
  std::size_t first;
  std::size_t of_member;  ///< bytes

  MPRESS_HOST_DEVICE constexpr std::size_t at(unsigned member) const {
    return first + member * of_member;
  }
  constexpr std::size_t end(unsigned members) const { return at(members); }
};

}  // namespace mpress::gpu
