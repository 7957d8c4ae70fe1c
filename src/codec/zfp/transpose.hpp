// The transposition between coefficients and bit planes, the same in vectors of any width.
//
// Included by a kernel's header once it has defined what this is written in: Vector, lanes of 32
// bits, and exchange<Distance>(Vector& x, Vector& y, int lower), which exchanges blocks of bits.
#pragma once

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

[[gnu::always_inline]] inline void transpose_4x4_bits(Vector (&v)[4]) {
  exchange<1>(v[0], v[1], 0x55555555);
  exchange<1>(v[2], v[3], 0x55555555);
  exchange<2>(v[0], v[2], 0x33333333);
  exchange<2>(v[1], v[3], 0x33333333);
}

/// From 32 bits of each coefficient to 32 planes, topmost first: nibble s % 8 of v[s / 8] holds
/// plane s.
[[gnu::always_inline]] inline void coefficients_to_planes(Vector (&v)[4]) {
  transpose_4x4_bits(v);  // now nibble g of v[j] is the plane of bit 4 * g + j
  exchange<4>(v[3], v[2], 0x0F0F0F0F);
  exchange<4>(v[1], v[0], 0x0F0F0F0F);
  exchange<8>(v[2], v[0], 0x00FF00FF);
  exchange<8>(v[3], v[1], 0x00FF00FF);
  exchange<16>(v[2], v[3], 0x0000FFFF);
  exchange<16>(v[0], v[1], 0x0000FFFF);
  const Vector first = v[1];  // the coefficients' bytes from the top: v[1], v[3], v[0], v[2]
  v[1] = v[3], v[3] = v[2], v[2] = v[0], v[0] = first;
}

[[gnu::always_inline]] inline void planes_to_coefficients(Vector (&v)[4]) {
  const Vector first = v[0];
  v[0] = v[2], v[2] = v[3], v[3] = v[1], v[1] = first;
  exchange<16>(v[0], v[1], 0x0000FFFF);
  exchange<16>(v[2], v[3], 0x0000FFFF);
  exchange<8>(v[3], v[1], 0x00FF00FF);
  exchange<8>(v[2], v[0], 0x00FF00FF);
  exchange<4>(v[1], v[0], 0x0F0F0F0F);
  exchange<4>(v[3], v[2], 0x0F0F0F0F);
  transpose_4x4_bits(v);
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA
