// Tables of the CUDA twin of zfp: the automaton of zfp.hpp, two or three planes a step. Kernels
// copy them to shared memory, where every lane may ask for another entry.
#pragma once

#include <cstdint>

#include "codec/zfp/format.hpp"
#include "codec/zfp/block.hpp"

namespace mpress::codec::zfp::cuda {

/// Two planes, the bits of the first in the low half of a byte: entry [n][byte] holds
///   bits 0..4    length of their code, at most 11
///   bits 5..15   the code, first bit lowest
///   bits 16..23  zeros
///   bits 24..31  the state behind them
struct alignas(16) EncodeTable {
  std::uint32_t pair[5][256] = {};

  constexpr EncodeTable() {
    for (unsigned n = 0; n <= 4; ++n) {
      for (unsigned planes = 0; planes < 256; ++planes) {
        std::uint32_t code = 0;
        unsigned length = 0;
        unsigned state = n;
        for (unsigned x : {planes & 15, planes >> 4}) {
          if (state == 4) {
            code |= x << length, length += 4;
          } else {
            const unsigned step = plane_code(state, x);
            code |= (step >> 2 & 127u) << length, length += step >> 13;
            state = (step & 3) == 0 ? 4 : step & 3;
          }
        }
        pair[n][planes] = length | code << 5 | state << 24;
      }
    }
  }
};

/// The next ten bits of a stream, which hold two planes: entry [n][bits] holds
///   bits 0..4    bits consumed
///   bits 8..15   the planes, the first in the low half
///   bits 29..31  the state behind them
/// In the state 0 the group test before the first plane has been read already.
struct alignas(16) DecodeTable {
  std::uint32_t pair[5][1024] = {};

  constexpr DecodeTable() {
    for (unsigned n = 0; n <= 4; ++n) {
      for (unsigned bits = 0; bits < 1024; ++bits) {
        std::uint32_t planes = 0;
        unsigned at = 0;
        unsigned state = n;
        for (unsigned shift : {0u, 4u}) {
          unsigned x = (bits >> at) & ((1u << state) - 1);
          unsigned step = plane_step(state, bits >> (at + state), state == 0);
          at += state + (step >> 4 & 7);
          if (state == 0) {
            x = step & 15, state = step >> 8 & 7;
            step = plane_step(state, bits >> at);
            at += step >> 4 & 7;
          }
          planes |= (x | (step & 15)) << shift;
          state = step >> 8 & 7;
        }
        pair[n][bits] = at | planes << 8 | state << 29;
      }
    }
  }
};

/// Blocks of so few bits that at most seven are left for planes, which three planes fill. Such
/// planes are kept by element, three bits each, element 0 highest and its first plane highest.
inline constexpr unsigned short_bits = 7;

struct alignas(16) ShortEncodeTable {
  std::uint8_t code[4096] = {};  ///< the first bits of the code of planes whose first is not empty

  constexpr ShortEncodeTable() {
    for (unsigned planes = 0; planes < 4096; ++planes) {
      unsigned bits = 0;
      unsigned length = 0;
      unsigned n = 0;
      for (unsigned p = 0; p < 3 && length < short_bits; ++p) {
        const unsigned t = planes >> (2 - p);
        const unsigned x = (t >> 9 & 1) | (t >> 5 & 2) | (t >> 1 & 4) | (t << 3 & 8);
        const unsigned step = n == 4 ? x << 2 | 4u << 13 : plane_code(n, x);
        bits |= (step >> 2 & 127u) << length, length += step >> 13;
        n = (step & 3) == 0 ? 4 : step & 3;
      }
      code[planes] = static_cast<std::uint8_t>(bits & 127);
    }
  }
};

struct alignas(16) ShortDecodeTable {
  /// By the bits behind the first group test, with a one above them.
  std::uint16_t planes[128] = {};

  constexpr ShortDecodeTable() {
    for (unsigned marked = 1; marked < 128; ++marked) {
      unsigned length = 0;
      while (marked >> (length + 1) != 0) ++length;
      BlockBits<1> bits;
      bits.word[0] = (marked ^ 1u << length) << 1 | 1;
      std::uint32_t u[4] = {};
      decode_planes<float>(bits, 0, length + 1, kTables, u);
      for (const std::uint32_t c : u) {
        planes[marked] = static_cast<std::uint16_t>(planes[marked] << 3 | c >> 29);
      }
    }
  }
};

}  // namespace mpress::codec::zfp::cuda
