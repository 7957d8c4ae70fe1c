// `zfp` in AVX2 lanes: the layout of the stream and the loop over groups of 16 blocks.
#include <immintrin.h>

#include <cstring>

#include "codec/zfp/avx2_elements.hpp"
#include "codec/zfp/avx2_planes.hpp"
#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

/// Writes 8 blocks of `bits` bits, `bits` bytes in all; `room` bytes follow `out`.
[[gnu::always_inline]] inline void pack(Pair blocks, unsigned bits, unsigned char* out,
                                        std::size_t room) {
  alignas(32) std::uint64_t block[8];
  store(block, blocks.low);
  store(block + 4, blocks.high);
  alignas(8) unsigned char last[72];
  unsigned char* const to = room >= sizeof last ? out : last;
  if (bits % 8 == 0) {
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * (bits / 8), &block[i], 8);
  } else {
    const std::uint64_t mask = (1ull << bits) - 1;
    std::uint64_t word = 0;
    unsigned used = 0;
    unsigned char* next = to;
    for (const std::uint64_t b : block) {
      const std::uint64_t value = b & mask;
      word |= value << used;
      used += bits;
      if (used >= 64) {
        std::memcpy(next, &word, 8);
        next += 8;
        used -= 64;
        word = value >> 1 >> (bits - used - 1);
      }
    }
    std::memcpy(next, &word, 8);
  }
  if (to == last) std::memcpy(out, last, bits);
}

/// Reads them. Up to 80 bytes from `in` on are touched.
[[gnu::always_inline]] inline Pair unpack(const unsigned char* in, unsigned bits) {
  const auto word = [&](unsigned i, unsigned offset) {
    long long value;
    std::memcpy(&value, in + i * bits / 8 + offset, 8);
    return value;
  };
  const auto words = [&](unsigned i, unsigned offset) {
    return _mm256_set_epi64x(word(i + 3, offset), word(i + 2, offset), word(i + 1, offset),
                             word(i, offset));
  };
  const auto shifts = [&](unsigned i) {
    return _mm256_set_epi64x((i + 3) * bits % 8, (i + 2) * bits % 8, (i + 1) * bits % 8,
                             i * bits % 8);
  };
  const Register mask = _mm256_set1_epi64x(static_cast<long long>(~0ull >> (64 - bits)));
  if (bits % 8 == 0) return {both_of(words(0, 0), mask), both_of(words(4, 0), mask)};
  const auto assemble = [&](unsigned i) {
    const Register shift = shifts(i);
    Register v = _mm256_srlv_epi64(words(i, 0), shift);
    if (bits > 57) {
      const Register up = _mm256_sub_epi64(_mm256_set1_epi64x(64), shift);
      v = any_of(v, _mm256_sllv_epi64(words(i, 8), up));
    }
    return both_of(v, mask);
  };
  return {assemble(0), assemble(4)};
}

/// Puts together what is the same in Part and Group, and takes it apart.
Group join(const Part& a, const Part& b) {
  Group group;
  for (int i = 0; i < 4; ++i) group.coefficient[i] = {a.coefficient[i], b.coefficient[i]};
  group.lead = {a.lead, b.lead};
  group.exponent = {a.exponent, b.exponent};
  group.coded = {a.coded, b.coded};
  return group;
}
void split(const Group& group, Part& a, Part& b) {
  for (int i = 0; i < 4; ++i) {
    a.coefficient[i] = group.coefficient[i].a;
    b.coefficient[i] = group.coefficient[i].b;
  }
  a.lead = group.lead.a, b.lead = group.lead.b;
  a.exponent = group.exponent.a, b.exponent = group.exponent.b;
  a.coded = group.coded.a, b.coded = group.coded.b;
}

template <typename Element>
std::size_t encode_all(const unsigned char* in, std::size_t blocks, std::uint32_t block_bits,
                       unsigned char* out, ExceptionList& exceptions) {
  using S = Side<Element>;
  constexpr std::size_t part_bytes = kPart * kBlock * sizeof(Element);
  const std::size_t groups = blocks / kGroup;
  const unsigned char* const end = out + groups * 2 * block_bits;
  for (std::size_t i = 0; i < groups; ++i, in += 2 * part_bytes) {
    Part part[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const unsigned char* from = in + k * part_bytes;
      const unsigned bad = S::load_part(from, part[k]);
      if (bad != 0) [[unlikely]] {
        except<Element>(exceptions, bad, S::kBlockOfLane, i * kGroup + k * kPart, from);
      }
    }
    Wide bits{};
    if (any_set({part[0].coded, part[1].coded})) {  // there are fields that are mostly zeros
      Group group = join(part[0], part[1]);
      bits = encode_bits<S::kHeaderBits>(group, static_cast<int>(block_bits));
    }
    pack({S::in_order(bits.low.a), S::in_order(bits.high.a)}, block_bits, out,
         static_cast<std::size_t>(end - out));
    out += block_bits;
    pack({S::in_order(bits.low.b), S::in_order(bits.high.b)}, block_bits, out,
         static_cast<std::size_t>(end - out));
    out += block_bits;
  }
  return groups * kGroup;
}

template <typename Element>
std::size_t decode_all(const unsigned char* in, std::size_t bytes, std::uint32_t block_bits,
                       std::size_t blocks, unsigned char* out) {
  using S = Side<Element>;
  constexpr std::size_t part_bytes = kPart * kBlock * sizeof(Element);
  const std::size_t groups = blocks / kGroup;
  const unsigned char* const end = in + bytes;
  for (std::size_t i = 0; i < groups; ++i, out += 2 * part_bytes) {
    unsigned char copy[144];
    const unsigned char* from = in;
    if (end - in < static_cast<std::ptrdiff_t>(sizeof copy)) [[unlikely]] {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, in, static_cast<std::size_t>(end - in));
      from = copy;
    }
    const Pair a = unpack(from, block_bits);
    const Pair b = unpack(from + block_bits, block_bits);
    const Wide bits = {{S::in_order(a.low), S::in_order(b.low)},
                       {S::in_order(a.high), S::in_order(b.high)}};
    const Vector headers = both_of(low_halves(bits), all(1));
    if (any_set(headers)) {
      Group group;
      decode_bits<S::kHeaderBits>(bits, static_cast<int>(block_bits), group);
      Part part[2];
      split(group, part[0], part[1]);
      S::store_part(part[0], out);
      S::store_part(part[1], out + part_bytes);
    } else {
      std::memset(out, 0, 2 * part_bytes);
    }
    in += 2 * block_bits;
  }
  return groups * kGroup;
}

}  // namespace

std::size_t encode_groups(ElementType type, const void* in, std::size_t blocks,
                          std::uint32_t block_bits, unsigned char* out, ExceptionList& exceptions) {
  const auto* from = static_cast<const unsigned char*>(in);
  return type == ElementType::f32 ? encode_all<float>(from, blocks, block_bits, out, exceptions)
                                  : encode_all<double>(from, blocks, block_bits, out, exceptions);
}

std::size_t decode_groups(ElementType type, const unsigned char* in, std::size_t bytes,
                          std::uint32_t block_bits, std::size_t blocks, void* out) {
  auto* to = static_cast<unsigned char*>(out);
  return type == ElementType::f32 ? decode_all<float>(in, bytes, block_bits, blocks, to)
                                  : decode_all<double>(in, bytes, block_bits, blocks, to);
}

}  // namespace mpress::codec::zfp::MPRESS_ISA
