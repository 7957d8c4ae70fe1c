// szp: error-bounded quantisation, prediction and bit planes. The format, as both twins see it;
// docs/codecs.md describes it in full.
//
//   payload   header, directory (u16 a unit: its words; padded to a word), units
//   unit      16 KiB of elements: head word, origin, centre, bitmap of blocks, block codes,
//             exception bitmaps and fill, bit planes, exception masks, exception values
//   block     32 elements, whose residuals share an order of prediction and a width
//
// Everything is little-endian and made of 32-bit words. A unit decodes from its own words and
// the header's step.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "codec/checksum.hpp"
#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/grid.hpp"
#include "codec/spec.hpp"
#include "codec/status.hpp"
#include "codec/summand.hpp"

// Instruction-set files must not share out-of-line copies of these with other files.
#define MPRESS_SZP_INLINE MPRESS_HOST_DEVICE __attribute__((always_inline)) constexpr

namespace mpress::codec::szp {

inline constexpr std::uint8_t format_version = 1;
inline constexpr std::uint32_t unit_bytes = 16384;
inline constexpr std::uint32_t block_elements = 32;
inline constexpr std::uint32_t max_blocks = unit_bytes / 4 / block_elements;
inline constexpr std::uint16_t raw_unit = 0xFFFF;  ///< directory entry of a unit kept as it is

/// The payload's first 32 bytes. `checksum` covers every other word of the payload.
struct Header {
  std::uint8_t version;
  ElementType type;
  Mode mode;
  std::uint8_t raw;  ///< 1: the elements themselves follow; no directory, no units
  std::uint32_t checksum;
  std::uint64_t count;
  double step;   ///< a value of the element type; 0 where raw
  double bound;  ///< what the user asked for; of a sum, that of all summands together
};
static_assert(sizeof(Header) == 32);

/// Arithmetic of an element type. `magic` (1.5 times the last power of two whose unit is 1)
/// rounds to the nearest even integer by one addition for |value| <= max_quantum. Sums of quanta
/// lie in [-sum_limit, sum_limit): they are numbers of the type, and no residual of theirs
/// overflows a Quantum.
template <class T>
struct Traits;

template <>
struct Traits<float> {
  using Bits = std::uint32_t;
  using Quantum = std::int32_t;
  static constexpr ElementType type = ElementType::f32;
  static constexpr float magic = 0x1.8p23f;
  static constexpr float max_quantum = 0x1p22f;
  static constexpr Bits sum_limit = Bits{1} << 24;
};

template <>
struct Traits<double> {
  using Bits = std::uint64_t;
  using Quantum = std::int64_t;
  static constexpr ElementType type = ElementType::f64;
  static constexpr double magic = 0x1.8p52;
  static constexpr double max_quantum = 0x1p51;
  static constexpr Bits sum_limit = Bits{1} << 53;
};

/// What quantisation needs. An element x becomes q = rint(x * inverse), and decodes to
/// q * step. The test |x - q * step| < limit, in the element type, implies the bound: limit is
/// the largest value of the type not above it, and rounding the difference is monotone.
template <class T>
struct Quantizer {
  T step;
  T inverse;
  T limit;
  T most;  ///< x * inverse, either way, of sums of elements (any_order::quantum_of())
};

/// The largest value of the type that is not above `x` > 0.
template <class T>
MPRESS_SZP_INLINE T round_down(double x) {
  using Bits = typename Traits<T>::Bits;
  constexpr T most = std::numeric_limits<T>::max();
  if (x >= static_cast<double>(most)) return most;
  const T nearest = static_cast<T>(x);
  if (!(static_cast<double>(nearest) > x)) return nearest;
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, nearest) - 1);
}

/// Largest step whose inverse is a normal number.
template <class T>
inline constexpr double largest_step = sizeof(T) == 4 ? 0x1p126 : 0x1p1022;

/// False where the grid's step is not resolvable.
template <class T>
MPRESS_SZP_INLINE bool make_quantizer(const Grid& grid, Quantizer<T>& z) {
  constexpr T normal = std::numeric_limits<T>::min();
  if (!(grid.bound > 0) || grid.bound > std::numeric_limits<double>::max()) return false;
  const double shrunk = grid.bound * step_shrink;
  const double half = shrunk < largest_step<T> / 2 ? shrunk : largest_step<T> / 2;
  z.limit = round_down<T>(grid.bound + grid.slack);
  z.most = grid.reach > 0 ? round_down<T>(grid.reach) : Traits<T>::max_quantum + 2;
  z.step = grid.step > 0 ? static_cast<T>(grid.step) : round_down<T>(2 * half);
  z.inverse = static_cast<T>(1.0 / static_cast<double>(z.step));
  return z.limit >= normal && z.step >= normal;
}

/// Of finite elements from `least` to `most`, for a bound of `share` of what they span. Elements
/// that are all alike are one step each, or none, and come back as they are, but for the sign of
/// zeros; where they are no step of this type, there is no grid. Tests against the bound may be
/// left out, as for any small quanta.
template <class T>
MPRESS_SZP_INLINE Grid relative_grid(double share, double least, double most) {
  constexpr double normal = std::numeric_limits<T>::min();
  constexpr double widest = std::numeric_limits<double>::max();
  const double width = most - least < widest ? most - least : widest;
  Grid grid(share * width);
  if (width != 0) return grid;
  const double step = least == 0 ? normal : least < 0 ? -least : least;
  if (step < normal || step > largest_step<T>) return grid;
  grid.bound = normal;  // the least that the encoder can test
  grid.step = step;
  return grid;
}

/// f64 units whose quanta stay below this use 32-bit arithmetic.
inline constexpr std::int64_t narrow_limit = std::int64_t{1} << 28;

/// Rounded quotient as a number of the type; only for |x * inverse| <= max_quantum.
template <class T>
MPRESS_SZP_INLINE T round_quantum(T scaled) {
  return (scaled + Traits<T>::magic) - Traits<T>::magic;
}

/// Quantises one element; false where it must be kept exactly. Where rounding pushed the
/// nearest multiple just beyond the limit, the multiple on the other side may still be inside.
template <class T>
MPRESS_SZP_INLINE bool quantize(const Quantizer<T>& z, T x, typename Traits<T>::Quantum& quantum) {
  using Quantum = typename Traits<T>::Quantum;
  const T scaled = x * z.inverse;
  const T most = Traits<T>::max_quantum;
  if (!(scaled >= -most && scaled <= most)) return false;
  T q = round_quantum(scaled);
  T error = x - q * z.step;
  if (!(error < z.limit && error > -z.limit)) {
    q += error > 0 ? T(1) : T(-1);
    error = x - q * z.step;
    if (!(q >= -most && q <= most && error < z.limit && error > -z.limit)) return false;
  }
  quantum = static_cast<Quantum>(q);
  return true;
}

// Prediction. A block's residuals are taken from the quanta before each element, across blocks:
// order 1 from the last, order 2 from the line through the last two, order 3 from the parabola
// through the last three (tried in dense mode only), order 0 from the unit's centre. The quanta
// before a unit's first element equal its origin. A residual r is stored as r + bias >= 0 in
// `width` bits; `flip` moves the range from
// [-h, h-1] to [-(h-1), h], h = 2^(width-1), which saves a bit where it is needed on one side
// only. Order and flip together are a block's form.
inline constexpr std::uint32_t forms = 8;
inline constexpr std::uint32_t max_width = 56;

/// Forms that an encoder tries; of equally wide ones it takes the first.
MPRESS_SZP_INLINE std::uint32_t forms_tried(Mode mode) { return mode == Mode::dense ? 8 : 6; }

MPRESS_SZP_INLINE std::uint32_t form_order(std::uint32_t form) {
  return form < 2 ? 1 : form < 4 ? 2 : form < 6 ? 0 : 3;
}

template <class Quantum>
MPRESS_SZP_INLINE Quantum bias(std::uint32_t width, std::uint32_t form) {
  return width == 0 ? 0 : static_cast<Quantum>((Quantum{1} << (width - 1)) - (form & 1));
}

// The unit's head word.
//   bits 0-5 least width, 6-13 set of forms in use, 14-17 bits a block code, then flags
// A block code is (width - least) * (number of forms in use) + (rank of its form among them).
inline constexpr std::uint32_t forms_shift = 6;
inline constexpr std::uint32_t code_bits_shift = 14;
inline constexpr std::uint32_t has_origin = 1u << 18;      ///< quantum before the first element
inline constexpr std::uint32_t has_centre = 1u << 19;      ///< what order 0 predicts
inline constexpr std::uint32_t has_bitmap = 1u << 20;      ///< else every block has a code
inline constexpr std::uint32_t has_exceptions = 1u << 21;  ///< some elements are kept exactly
inline constexpr std::uint32_t is_wide = 1u << 22;         ///< f64: 64-bit quanta
inline constexpr std::uint32_t known_head = 0x7FFFFF;

// Exceptions. An exceptional element takes part in prediction as a repetition of the quantum
// before it. Two bits a block say where they are: `partial` alone: the block's mask, whose
// elements all equal the unit's fill; `listed` alone: the whole block equals the fill; both: a
// mask and one value for each of its bits. The fill is the unit's first exceptional element.

MPRESS_SZP_INLINE std::size_t ceil_div(std::size_t a, std::size_t b) {
  return a / b + (a % b != 0);
}

/// Elements of a whole unit.
MPRESS_SZP_INLINE std::size_t unit_elements(ElementType type) {
  return unit_bytes / (type == ElementType::f32 ? 4 : 8);
}

MPRESS_SZP_INLINE std::size_t unit_count(ElementType type, std::size_t count) {
  return ceil_div(count, unit_elements(type));
}

MPRESS_SZP_INLINE std::size_t directory_bytes(std::size_t units) { return ceil_div(units, 2) * 4; }

/// The sum of two payloads' bounds. Multiples of 2^-32 of the step's power of two, so that sums are
/// exact, hence the same in any order. Each is at least 2^-11 of the step: what is rounded in
/// decoding a sum is covered where elements themselves are on the grid, and err by nothing.
MPRESS_HOST_DEVICE __attribute__((always_inline)) inline Status add_bounds(double step, double a,
                                                                           double b, double& sum) {
  if (!(a > 0) || !(b > 0)) return Status::corrupt;
  const double least = std::ldexp(step, -11);
  if (a < least) a = least;
  if (b < least) b = least;
  const int unit = std::ilogb(step) - 32;
  const double units = std::ceil(std::ldexp(a, -unit)) + std::ceil(std::ldexp(b, -unit));
  if (!(units <= 0x1p53)) return Status::inexact;
  sum = std::ldexp(units, unit);
  constexpr double most = std::numeric_limits<double>::max();
  return sum <= most ? Status::ok : Status::inexact;
}

/// Whether units of two payloads may be added, by what their headers say.
MPRESS_SZP_INLINE Status compare(const Header& a, const Header& b) {
  if (a.raw != 0 || b.raw != 0) return Status::inexact;
  return a.step != b.step ? Status::mismatched : Status::ok;
}

/// Makes the header of one or more summands, without its checksum, that of a sum with one more. Not
/// ok where there is none.
MPRESS_HOST_DEVICE __attribute__((always_inline)) inline Status join(Header& sum,
                                                                     const Header& next) {
  if (next.mode == Mode::dense) sum.mode = Mode::dense;
  if (sum.count == 0) {  // as the encoder has it: raw, and nothing errs
    sum = {sum.version, sum.type, sum.mode, 1, 0, 0, 0, 0};
    return Status::ok;
  }
  const Status status = compare(sum, next);
  return status == Status::ok ? add_bounds(sum.step, sum.bound, next.bound, sum.bound) : status;
}

/// The most that encode() writes: the header and the elements as they are.
std::size_t max_bytes(ElementType type, std::size_t count);

/// The bound that the beginning of an untrusted payload tells: 0 where it holds the elements, or is
/// too short.
double told_bound(const void* payload, std::size_t bytes);

/// make_quantizer() for hosts, in mpress's own floating-point environment.
bool quantizer_of(const Grid& grid, Quantizer<float>& z);
bool quantizer_of(const Grid& grid, Quantizer<double>& z);

/// Encodes `count` elements (any alignment) into `out`, which has room for max_bytes(), such
/// that |x - x'| <= the grid's bound and slack for every finite x; NaN and infinities keep their
/// bits. The header tells the bound alone. Returns the bytes written. Dense mode tries more
/// predictions.
std::size_t encode(ElementType type, const void* in, std::size_t count, const Grid& grid, Mode mode,
                   void* out);

/// Decodes exactly `count` elements from an untrusted payload of `bytes` bytes, or combines them
/// with what is there.
Status decode(ElementType type, const void* payload, std::size_t bytes, void* out,
              std::size_t count, Combine how = Combine::replace);

/// What elements among the summands count as: as what encode() makes of them.
struct EncodedAs {
  Grid grid;
  Mode mode = Mode::fast;
};

/// Adds untrusted payloads of `count` elements each, 2 to most_summands, without going through the
/// elements: quanta are added exactly, and `out` becomes the payload that encode() writes for their
/// sums, dense where a summand is. It may be added again. `out` has room for max_bytes() and
/// overlaps no summand. `out_bytes` is what was written, 0 without success, when the contents of
/// `out` are unspecified. `decoded`, unless null, is where the sum's elements go, as decode() has
/// them; it overlaps no summand, and is unspecified without success. `out` may be null where the
/// elements alone are wanted: nothing is packed then, and a sum whose payload would be no shorter
/// than they are is none too many.
///
/// The order of the summands does not change a byte of the result, nor does it matter whether they
/// are added in one call or in several: but several may refuse, where sums cancel.
///
/// The sum's `bound` is the sum of theirs, rounded up to a multiple of 2^-32 of the step's power of
/// two. Decoding it gives the exact sum of the original elements within that bound and the
/// rounding of products, u * step * (sum of |q| of the summands + |q| of the sum), u = 2^-24 for
/// f32 and 2^-53 for f64. The slack in the step covers this rounding while the summands' |q|
/// average less than about 2000 (f32), 10^12 (f64). Where summands have a slack, theirs is added.
///
/// truncated, corrupt, unsupported: as decode() reports them for the first payload that is not
/// sound; corrupt as well where a bound is not above 0.
/// mismatched: their steps differ.
/// inexact: the sum is not one of quanta. A payload or unit holds elements exactly (exceptions,
/// or raw: the last unit of a message may be, where it has few elements), or would have to; a
/// summand's elements would be exceptions, or have no step; a quantum leaves [-sum_limit,
/// sum_limit); or the bounds of more than 2^20 payloads are summed up. The reduction is then to be
/// done with the elements.
Status add(ElementType type, std::span<const Summand> summands, std::size_t count, void* out,
           std::size_t& out_bytes, const EncodedAs& elements = {}, void* decoded = nullptr);

}  // namespace mpress::codec::szp
