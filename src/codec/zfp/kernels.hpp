// What the host entry points of `zfp` and its vector kernels know of each other. A kernel does
// leading blocks of a message, in groups, and says how many; the portable code does the rest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/element.hpp"

namespace mpress::codec::zfp {

/// Blocks that a kernel handles at once: 16 blocks end at a byte whatever their bits.
inline constexpr std::size_t kGroup = 16;

/// Kernels take budgets of up to one word a block.
inline constexpr std::uint32_t kKernelBlockBits = 64;

/// Where the exceptions of a message go. `add` is defined out of line: kernels call it.
struct ExceptionList {
  ElementType type;
  unsigned char* records;  // room for `capacity` of them
  std::uint64_t capacity;
  std::uint64_t count = 0;  // also those without room

  /// Keeps `elements` (up to 4) of block `block`; zeros stand for missing ones.
  void add(std::uint64_t block, const void* elements, std::size_t count_in_block);
};

#define MPRESS_ZFP_KERNELS                                                                       \
  /* Encodes some of the `blocks` whole blocks at `in` to the stream at `out`, which has room */ \
  /* for all of them. Returns how many, a multiple of kGroup. */                                 \
  std::size_t encode_groups(ElementType type, const void* in, std::size_t blocks,                \
                            std::uint32_t block_bits, unsigned char* out,                        \
                            ExceptionList& exceptions);                                          \
  /* Decodes some of the `blocks` whole blocks of the stream of `bytes` bytes at `in`. */        \
  std::size_t decode_groups(ElementType type, const unsigned char* in, std::size_t bytes,        \
                            std::uint32_t block_bits, std::size_t blocks, void* out);

namespace avx2 {
MPRESS_ZFP_KERNELS
}
namespace avx512 {
MPRESS_ZFP_KERNELS
}
#undef MPRESS_ZFP_KERNELS

}  // namespace mpress::codec::zfp
