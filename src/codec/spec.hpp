// The grammar of codec specs, the same in the CLI, the environment, MPI_Info, C and Python:
//
//   none | auto
//   mpc | mpc:dim=N            N in 1..32; without it the encoder samples the data
//   zfp:RATE                   bits a value, quantised to 1/4 bit
//   szp:abs=E | szp:rel=E      with ,mode=fast|dense
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/element.hpp"

namespace mpress {

/// Codec identifiers. The values are part of the wire format.
enum class Codec : std::uint8_t { none = 0, mpc = 1, zfp = 2, szp = 3, automatic = 255 };

/// How a bound is given: absolute, or relative to max - min of the message's finite elements.
enum class Bound : std::uint8_t { none = 0, abs = 1, rel = 2 };

enum class Mode : std::uint8_t { fast = 0, dense = 1 };

/// A parsed codec spec: a plain value, comparable.
struct Spec {
  Codec codec = Codec::automatic;
  Bound bound = Bound::none;
  Mode mode = Mode::fast;
  std::uint8_t dim = 0;  ///< mpc: distance of the delta; 0 means chosen by sampling
  double value = 0;      ///< zfp: bits a value as asked for; szp: the bound
  double slack = 0;      ///< szp with an absolute bound: of its grid (codec/grid.hpp)
  double step = 0;       ///< of its grid, too; 0: it follows from the bound

  bool operator==(const Spec&) const = default;

  bool lossy() const { return codec == Codec::zfp || codec == Codec::szp; }
};

/// Parses `text`. On failure returns false and sets `error` to one sentence that quotes the
/// offending part and says what was expected.
bool parse_spec(std::string_view text, Spec& spec, std::string& error);

/// Checks what depends on the element type (zfp's range of rates, a bound that the type can
/// resolve). Same error convention.
bool validate_spec(const Spec& spec, ElementType type, std::string& error);

/// The canonical text of a spec; parse_spec(to_string(s)) gives s again.
std::string to_string(const Spec& spec);

/// The shortest text that reads back as the number.
std::string number_text(double value);

/// zfp spends a whole number of bits on a block of 4 values: floor(4 * rate + 1/2), at least
/// the block header (libzfp's zfp_stream_set_rate).
std::uint32_t zfp_block_bits(double rate, ElementType type);

/// Bits a value that zfp really spends at `rate`.
inline double zfp_effective_rate(double rate, ElementType type) {
  return zfp_block_bits(rate, type) / 4.0;
}

}  // namespace mpress
