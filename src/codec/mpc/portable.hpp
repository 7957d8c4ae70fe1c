// The mpc kernel without vectors: the reference that all others equal.
#pragma once

#include <bit>

#include "codec/mpc/unit.hpp"

namespace mpress::codec::mpc::portable {

template <class W>
struct Kernel {
  using Word = W;

  static Extent<Word> range(const Word* in, unsigned n) {
    Extent<Word> e{~Word{0}, 0, 0};
    for (unsigned i = 0; i < n; ++i) {
      const Word magnitude = in[i] & ~Layout<Word>::sign;
      if (magnitude - 1 < e.least) e.least = magnitude - 1;
      if (magnitude > e.largest) e.largest = magnitude;
      e.any |= in[i];
    }
    return e;
  }

  static void order(const Word* in, unsigned n, Scale<Word> scale, Word* ordered) {
    for (unsigned i = 0; i < n; ++i) ordered[i] = to_ordered(in[i], scale);
  }

  static Word residual(unsigned order, const Word* in, const Word* ordered, Scale<Word> scale) {
    if (order == 0) return to_distance(*in, scale);
    if (order == 1) return zigzag<Word>(ordered[0] - ordered[-1]);
    return zigzag<Word>(ordered[0] - 2 * ordered[-1] + ordered[-2]);
  }

  static void measure(const Word* in, const Word* ordered, unsigned n, Scale<Word> scale,
                      std::uint8_t (*widths)[kUnitBlocks<Word>]) {
    for (unsigned order = 0; order < kOrders; ++order) {
      for (unsigned b = 0; b < n / kBlock; ++b) {
        Word any = 0;
        for (unsigned i = b * kBlock; i < (b + 1) * kBlock; ++i) {
          any |= residual(order, in + i, ordered + i, scale);
        }
        widths[order][b] = static_cast<std::uint8_t>(std::bit_width(any));
      }
    }
  }

  static GroupTable choose_table(std::uint8_t* widths, unsigned char* table) {
    unsigned largest = 0;
    for (unsigned b = 0; b < kGroupBlocks; ++b) largest = widths[b] > largest ? widths[b] : largest;
    const unsigned code = width_to_code(largest);
    largest = code_to_width(code);
    unsigned kind = 0;
    unsigned best_size = ~0u;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned size = table_bytes(k);
      for (unsigned b = 0; b < kGroupBlocks; ++b) {
        size += table_width(k, largest, table_entry(k, largest, widths[b]));
      }
      if (size < best_size) {
        kind = k;
        best_size = size;
      }
    }
    std::uint16_t weights[4] = {};
    for (unsigned b = 0; b < kGroupBlocks; ++b) {
      const unsigned entry = table_entry(kind, largest, widths[b]);
      for (unsigned i = 0; i < 4; ++i) weights[i] |= (entry >> i & 1) << b;
      widths[b] = static_cast<std::uint8_t>(table_width(kind, largest, entry));
    }
    std::memcpy(table, weights, sizeof(weights));
    return {static_cast<unsigned char>(code | kind << 6), table_bytes(kind),
            best_size - table_bytes(kind)};
  }

  static unsigned read_table(unsigned kind, unsigned largest, const unsigned char* table,
                             std::uint8_t* widths) {
    std::uint16_t weights[4] = {};
    std::memcpy(weights, table, table_bytes(kind));
    unsigned sum = 0;
    for (unsigned b = 0; b < kGroupBlocks; ++b) {
      unsigned entry = 0;
      for (unsigned i = 0; i < 4; ++i) entry |= (weights[i] >> b & 1u) << i;
      widths[b] = static_cast<std::uint8_t>(table_width(kind, largest, entry));
      sum += widths[b];
    }
    return sum;
  }

  static unsigned char* pack(unsigned order, const Word* in, const Word* ordered, unsigned n,
                             Scale<Word> scale, const std::uint8_t* widths, unsigned char* out) {
    for (unsigned b = 0; b < n / kBlock; ++b) {
      Word r[kBlock];
      for (unsigned i = 0; i < kBlock; ++i) {
        r[i] = residual(order, in + b * kBlock + i, ordered + b * kBlock + i, scale);
      }
      for (unsigned plane = 0; plane < widths[b]; plane += 8) {
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < kBlock; ++i) {
          bytes |= std::uint64_t{r[i] >> plane & 0xFF} << (8 * i);
        }
        bytes = transpose_bits(bytes);
        std::memcpy(out + plane, &bytes, 8);
      }
      out += widths[b];
    }
    return out;
  }

  static void unpack(unsigned order, const unsigned char* in, const std::uint8_t* widths,
                     unsigned n, Word seed, Scale<Word> scale, Word* out) {
    Word value = seed;
    Word difference = 0;
    for (unsigned b = 0; b < n / kBlock; ++b) {
      Word r[kBlock] = {};
      for (unsigned plane = 0; plane < widths[b]; plane += 8) {
        std::uint64_t bytes = 0;
        const unsigned left = widths[b] - plane;
        std::memcpy(&bytes, in + plane, left < 8 ? left : 8);
        bytes = transpose_bits(bytes);
        for (unsigned i = 0; i < kBlock; ++i) {
          r[i] |= static_cast<Word>(bytes >> (8 * i) & 0xFF) << plane;
        }
      }
      in += widths[b];
      for (unsigned i = 0; i < kBlock; ++i) {
        Word& element = out[b * kBlock + i];
        if (order == 0) {
          element = from_distance(r[i], scale);
          continue;
        }
        difference = order == 1 ? unzigzag(r[i]) : difference + unzigzag(r[i]);
        value += difference;
        element = from_ordered(value, scale);
      }
    }
  }
};

}  // namespace mpress::codec::mpc::portable
