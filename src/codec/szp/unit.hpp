// The unit codec that each instruction set provides. It is written once, in szp_encode.hpp,
// szp_decode.hpp and szp_add.hpp; the sources that include them supply bit planes.
#pragma once

#include <span>

#include "codec/szp/format.hpp"

namespace mpress::codec::szp {

/// Memory that a unit needs beside the stack.
inline constexpr std::size_t scratch_bytes = 64 << 10;

/// What becomes of a unit: its words, or `raw` where they would not be fewer than the elements'.
struct EncodedUnit {
  std::uint32_t words;
  bool raw;
};

/// A unit of a payload: its words, 0 where every quantum is 0. Never one kept as it is. Or elements
/// that are to be quantised.
struct CodedUnit {
  const unsigned char* at;
  std::size_t words;
  bool is_elements = false;
};

#define MPRESS_SZP_DECLARE(isa)                                                                    \
  namespace isa {                                                                                  \
  EncodedUnit encode_unit(const Quantizer<float>&, Mode, const unsigned char* in,                  \
                          std::size_t count, unsigned char* out, std::size_t room, void* scratch); \
  EncodedUnit encode_unit(const Quantizer<double>&, Mode, const unsigned char* in,                 \
                          std::size_t count, unsigned char* out, std::size_t room, void* scratch); \
  bool decode_unit(float step, const unsigned char* in, std::size_t words, unsigned char* out,     \
                   std::size_t count);                                                             \
  bool decode_unit(double step, const unsigned char* in, std::size_t words, unsigned char* out,    \
                   std::size_t count);                                                             \
  Status add_unit(const Quantizer<float>&, Mode, std::span<const CodedUnit>, std::size_t count,    \
                  unsigned char* out, std::size_t room, unsigned char* decoded, EncodedUnit& sum,  \
                  void* scratch);                                                                  \
  Status add_unit(const Quantizer<double>&, Mode, std::span<const CodedUnit>, std::size_t count,   \
                  unsigned char* out, std::size_t room, unsigned char* decoded, EncodedUnit& sum,  \
                  void* scratch);                                                                  \
  }

// encode_unit() and add_unit() write only where the unit is not raw and has at most `room` words.
// decode_unit() takes a unit of 1 or more words; false: it contradicts itself. add_unit() leaves
// the sum's elements in `decoded`, unless that is null. `scratch` has scratch_bytes, aligned to 64.
MPRESS_SZP_DECLARE(portable)
MPRESS_SZP_DECLARE(avx2)
MPRESS_SZP_DECLARE(avx512)

}  // namespace mpress::codec::szp
