// What decoding does with the elements that are there already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE
#include "codec/element.hpp"
#include "codec/float_environment.hpp"
#include "codec/grid.hpp"

namespace mpress::codec {

/// The reductions of floats that MPI has. min and max of a NaN and anything are NaN, so that the
/// result does not depend on the order; of zeros of two signs, either.
enum class Combine : std::uint8_t { replace, sum, min, max, prod };

template <Combine how, class T>
MPRESS_HOST_DEVICE __attribute__((always_inline)) constexpr T combine(T have, T value) {
  if constexpr (how == Combine::sum) return have + value;
  if constexpr (how == Combine::min) return value < have || value != value ? value : have;
  if constexpr (how == Combine::max) return value > have || value != value ? value : have;
  if constexpr (how == Combine::prod) return have * value;
  return value;
}

/// On the host, over `count` elements of any alignment, as MPI would: with the calling thread's
/// modes. Traps are masked, and flags are as before.
void combine_elements(Combine how, ElementType type, void* have, const void* values,
                      std::size_t count);

/// The same over `inputs`, one or more, in their order: the first with the second, what comes of it
/// with the third, and so on. Each is of `count` elements; `out` may be one of them. `wide`: sums
/// are made in double precision, and rounded once. `modes`: those of the call that it is done for,
/// which may be another thread's.
void combine_all(Combine how, ElementType type, std::span<const void* const> inputs, void* out,
                 std::size_t count, bool wide = false, FloatModes modes = FloatModes::of_thread());

/// Sums, minima or maxima of `inputs`, one or more, that have the same bits in any order of these
/// (codec/any_order.hpp). Every NaN, and the sum of two infinities of different signs, is the same
/// NaN; a sum that is 0 is +0; of zeros, -0 is the least. A sum is rounded once, but for a double
/// rounding now and then, and is off by no more than one rounding and 2^-100 (f32) or 2^-120 (f64)
/// of the largest magnitude besides, of up to 1024 inputs. `grid`: none, or that of szp with which
/// inputs are encoded that are summed. Then each is taken for what it decodes to, whether or
/// not it has been encoded, and the result is what szp::add() gives, where that succeeds.
void combine_in_any_order(Combine how, ElementType type, std::span<const void* const> inputs,
                          void* out, std::size_t count, const Grid& grid = {});

}  // namespace mpress::codec
