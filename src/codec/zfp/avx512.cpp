// `zfp` in AVX-512 lanes: elements, fixed point, decorrelation, and the loop over groups of 16
// blocks.
#include <immintrin.h>

#include <cstring>

#include "codec/zfp/avx512_planes.hpp"
#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

// ---- Elements <-> coefficients --------------------------------------------------------------

// Arithmetic on lanes of the element type's width.
template <typename Element>
struct Lanes;

template <>
struct Lanes<float> {
  static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  static Vector half(Vector a) { return _mm512_srai_epi32(a, 1); }
  static Vector negabinary() { return all(static_cast<int>(0xAAAAAAAA)); }
};

template <>
struct Lanes<double> {
  static Vector add(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_epi64(a, b); }
  static Vector half(Vector a) { return _mm512_srai_epi64(a, 1); }
  static Vector negabinary() { return all(static_cast<int>(0xAAAAAAAA)); }
};

template <typename Element>
void to_negabinary(Vector (&v)[4]) {  // lift() and the conversion
  using L = Lanes<Element>;
  Vector x = v[0], y = v[1], z = v[2], w = v[3];
  x = L::half(L::add(x, w)), w = L::sub(w, x);
  z = L::half(L::add(z, y)), y = L::sub(y, z);
  x = L::half(L::add(x, z)), z = L::sub(z, x);
  w = L::half(L::add(w, y)), y = L::sub(y, w);
  w = L::add(w, L::half(y)), y = L::sub(y, L::half(w));
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
  for (Vector& c : v) c = _mm512_xor_si512(L::add(c, L::negabinary()), L::negabinary());
}

template <typename Element>
void from_negabinary(Vector (&v)[4]) {
  using L = Lanes<Element>;
  for (Vector& c : v) c = L::sub(_mm512_xor_si512(c, L::negabinary()), L::negabinary());
  Vector x = v[0], y = v[1], z = v[2], w = v[3];
  y = L::add(y, L::half(w)), w = L::sub(w, L::half(y));
  y = L::add(y, w), w = L::add(w, L::sub(w, y));
  z = L::add(z, x), x = L::add(x, L::sub(x, z));
  y = L::add(y, z), z = L::add(z, L::sub(z, y));
  w = L::add(w, x), x = L::add(x, L::sub(x, w));
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
}

/// Keeps the blocks of a group whose lanes are in `lanes`.
template <typename Element>
void except(ExceptionList& exceptions, unsigned lanes, const unsigned char* block_of_lane,
            std::size_t first_block, const void* in) {
  const auto* from = static_cast<const unsigned char*>(in);
  unsigned blocks = 0;  // in ascending order, which that of lanes is not
  for (int lane = 0; lane < 16; ++lane) blocks |= (lanes >> lane & 1) << block_of_lane[lane];
  for (; blocks != 0; blocks &= blocks - 1) {
    const auto block = static_cast<unsigned>(__builtin_ctz(blocks));
    exceptions.add(first_block + block, from + block * kBlock * sizeof(Element), kBlock);
  }
}

template <typename Element>
struct Side;

template <>
struct Side<float> {
  static constexpr int kHeaderBits = Traits<float>::kHeaderBits;
  /// Transposing 4x4 elements inside 128 bits leaves the blocks in this order.
  static constexpr unsigned char kBlockOfLane[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                     2, 6, 10, 14, 3, 7, 11, 15};

  static void transpose(Vector (&v)[4]) {
    const Vector a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    const Vector c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, c), v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d), v[3] = _mm512_unpackhi_epi64(b, d);
  }

  /// Returns the lanes whose block is not finite; they come out as zero blocks.
  static unsigned load(const unsigned char* in, Group& group) {
    Vector(&v)[4] = group.coefficient;
    for (int i = 0; i < 4; ++i) v[i] = _mm512_loadu_si512(in + 64 * i);
    transpose(v);
    Vector largest = _mm512_setzero_si512();
    for (const Vector& x : v) {
      largest = _mm512_max_epu32(largest, _mm512_and_si512(x, all(0x7FFFFFFF)));
    }
    const __mmask16 finite = _mm512_cmplt_epi32_mask(largest, all(0x7F800000));
    if (finite != 0xFFFF) {
      for (Vector& x : v) x = _mm512_maskz_mov_epi32(finite, x);
      largest = _mm512_maskz_mov_epi32(finite, largest);
    }
    group.coded = _mm512_test_epi32_mask(largest, largest);
    if (group.coded == 0) return static_cast<unsigned>(finite) ^ 0xFFFF;
    group.exponent = _mm512_add_epi32(_mm512_srli_epi32(largest, 23), all(1));
    const __m512 scale = _mm512_cvtepi32_ps(_mm512_sub_epi32(all(157), group.exponent));
    for (Vector& x : v) {
      x = _mm512_cvttps_epi32(_mm512_scalef_ps(_mm512_castsi512_ps(x), scale));
    }
    to_negabinary<float>(v);
    group.lead = _mm512_lzcnt_epi32(
        _mm512_or_si512(_mm512_or_si512(v[0], v[1]), _mm512_or_si512(v[2], v[3])));
    for (Vector& x : v) x = _mm512_sllv_epi32(x, group.lead);
    return static_cast<unsigned>(finite) ^ 0xFFFF;
  }

  static void store(Group& group, unsigned char* out) {
    Vector(&v)[4] = group.coefficient;
    for (Vector& x : v) x = _mm512_srlv_epi32(x, group.lead);
    from_negabinary<float>(v);
    const __m512 scale = _mm512_cvtepi32_ps(_mm512_sub_epi32(group.exponent, all(157)));
    for (Vector& x : v) {
      x = _mm512_castps_si512(_mm512_maskz_scalef_ps(group.coded, _mm512_cvtepi32_ps(x), scale));
    }
    transpose(v);
    for (int i = 0; i < 4; ++i) _mm512_storeu_si512(out + 64 * i, v[i]);
  }
};

template <>
struct Side<double> {
  static constexpr int kHeaderBits = Traits<double>::kHeaderBits;
  static constexpr unsigned char kBlockOfLane[16] = {0, 2,  1, 3,  4,  6,  5,  7,
                                                     8, 10, 9, 11, 12, 14, 13, 15};

  struct Half {  // 8 blocks
    Vector v[4], lead, exponent;
    __mmask8 coded, finite;
  };

  static void load_half(const unsigned char* in, Half& half) {
    __m512d x[4];
    for (int i = 0; i < 4; ++i) x[i] = _mm512_loadu_pd(in + 64 * i);
    const __m512d a = _mm512_unpacklo_pd(x[0], x[1]), b = _mm512_unpackhi_pd(x[0], x[1]);
    const __m512d c = _mm512_unpacklo_pd(x[2], x[3]), d = _mm512_unpackhi_pd(x[2], x[3]);
    Vector(&v)[4] = half.v;
    v[0] = _mm512_castpd_si512(_mm512_shuffle_f64x2(a, c, 0x88));
    v[1] = _mm512_castpd_si512(_mm512_shuffle_f64x2(b, d, 0x88));
    v[2] = _mm512_castpd_si512(_mm512_shuffle_f64x2(a, c, 0xDD));
    v[3] = _mm512_castpd_si512(_mm512_shuffle_f64x2(b, d, 0xDD));
    Vector largest = _mm512_setzero_si512();
    for (const Vector& e : v) {
      largest =
          _mm512_max_epu64(largest, _mm512_and_si512(e, _mm512_set1_epi64(0x7FFFFFFFFFFFFFFF)));
    }
    half.finite = _mm512_cmplt_epi64_mask(largest, _mm512_set1_epi64(0x7FF0000000000000));
    if (half.finite != 0xFF) {
      for (Vector& e : v) e = _mm512_maskz_mov_epi64(half.finite, e);
      largest = _mm512_maskz_mov_epi64(half.finite, largest);
    }
    half.coded = _mm512_test_epi64_mask(largest, largest);
    if (half.coded == 0) {
      for (Vector& e : v) e = _mm512_setzero_si512();  // negative zeros too
      half.lead = half.exponent = _mm512_setzero_si512();
      return;
    }
    half.exponent = _mm512_add_epi64(_mm512_srli_epi64(largest, 52), _mm512_set1_epi64(1));
    const __m512d scale =
        _mm512_cvtepi64_pd(_mm512_sub_epi64(_mm512_set1_epi64(1085), half.exponent));
    for (Vector& e : v) {
      e = _mm512_cvttpd_epi64(_mm512_scalef_pd(_mm512_castsi512_pd(e), scale));
    }
    to_negabinary<double>(v);
    const Vector kept = coded_planes(half.exponent);
    for (Vector& e : v) e = _mm512_and_si512(e, kept);
    half.lead = _mm512_lzcnt_epi64(
        _mm512_or_si512(_mm512_or_si512(v[0], v[1]), _mm512_or_si512(v[2], v[3])));
    for (Vector& e : v) e = _mm512_srli_epi64(_mm512_sllv_epi64(e, half.lead), 32);
  }

  /// lowest_plane() as a mask.
  static Vector coded_planes(Vector exponent) {
    return _mm512_sllv_epi64(_mm512_set1_epi64(-1),
                             _mm512_subs_epu16(_mm512_set1_epi64(9), exponent));
  }

  static Vector join(Vector a, Vector b) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(a)),
                              _mm512_cvtepi64_epi32(b), 1);
  }

  static unsigned load(const unsigned char* in, Group& group) {
    Half a, b;
    load_half(in, a);
    load_half(in + 256, b);
    for (int i = 0; i < 4; ++i) group.coefficient[i] = join(a.v[i], b.v[i]);
    group.lead = join(a.lead, b.lead);
    group.exponent = join(a.exponent, b.exponent);
    group.coded = static_cast<__mmask16>(a.coded | b.coded << 8);
    return (static_cast<unsigned>(a.finite) | static_cast<unsigned>(b.finite) << 8) ^ 0xFFFF;
  }

  static void store_half(Vector (&v)[4], Vector exponent, Vector lead, __mmask8 coded,
                         unsigned char* out) {
    const Vector kept = coded_planes(exponent);
    for (Vector& e : v) {
      e = _mm512_and_si512(_mm512_srlv_epi64(_mm512_slli_epi64(e, 32), lead), kept);
    }
    from_negabinary<double>(v);
    const __m512d scale = _mm512_cvtepi64_pd(_mm512_sub_epi64(exponent, _mm512_set1_epi64(1085)));
    __m512d x[4];
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm512_maskz_scalef_pd(coded, _mm512_cvtepi64_pd(v[i]), scale);
    }
    const __m512d a = _mm512_unpacklo_pd(x[0], x[1]), b = _mm512_unpackhi_pd(x[0], x[1]);
    const __m512d c = _mm512_unpacklo_pd(x[2], x[3]), d = _mm512_unpackhi_pd(x[2], x[3]);
    const Vector low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const Vector high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_pd(out, _mm512_permutex2var_pd(a, low, c));
    _mm512_storeu_pd(out + 64, _mm512_permutex2var_pd(b, low, d));
    _mm512_storeu_pd(out + 128, _mm512_permutex2var_pd(a, high, c));
    _mm512_storeu_pd(out + 192, _mm512_permutex2var_pd(b, high, d));
  }

  static void store(const Group& group, unsigned char* out) {
    for (int half = 0; half < 2; ++half) {
      const auto lanes = [&](const Vector& v) {
        return _mm512_cvtepu32_epi64(half == 0 ? _mm512_castsi512_si256(v)
                                               : _mm512_extracti64x4_epi64(v, 1));
      };
      Vector v[4];
      for (int i = 0; i < 4; ++i) v[i] = lanes(group.coefficient[i]);
      store_half(v, lanes(group.exponent), lanes(group.lead),
                 static_cast<__mmask8>(group.coded >> 8 * half), out + 256 * half);
    }
  }
};

// ---- Groups ---------------------------------------------------------------------------------

template <typename Element>
std::size_t encode_all(const unsigned char* in, std::size_t blocks, std::uint32_t block_bits,
                       unsigned char* out, ExceptionList& exceptions) {
  using S = Side<Element>;
  const std::size_t groups = blocks / kGroup;
  const Packer packer(block_bits);
  alignas(64) std::uint64_t order[2][8];
  for (int lane = 0; lane < 16; ++lane) {
    const int block = S::kBlockOfLane[lane];
    order[block / 8][block % 8] = static_cast<std::uint64_t>(wide_lane(lane));
  }
  const Vector first = _mm512_load_si512(order[0]);
  const Vector second = _mm512_load_si512(order[1]);
  const __mmask64 partial = low_bits(block_bits);
  const unsigned char* const end = out + groups * 2 * block_bits;
  for (std::size_t i = 0; i < groups; ++i, in += kGroup * kBlock * sizeof(Element)) {
    Group group;
    const unsigned bad = S::load(in, group);
    if (bad != 0) [[unlikely]]
      except<Element>(exceptions, bad, S::kBlockOfLane, i * kGroup, in);
    Wide bits{};
    if (group.coded != 0) {  // there are fields that are zeros in most places
      bits = encode_bits<S::kHeaderBits>(group, static_cast<int>(block_bits));
    }
    const Vector a = packer.pack(_mm512_permutex2var_epi64(bits.a, first, bits.b));
    const Vector b = packer.pack(_mm512_permutex2var_epi64(bits.a, second, bits.b));
    // Stores overlap the place of the next ones, except at the end of the room.
    if (end - out >= 64 + static_cast<std::ptrdiff_t>(block_bits)) [[likely]] {
      _mm512_storeu_si512(out, a);
      _mm512_storeu_si512(out + block_bits, b);
    } else {
      _mm512_mask_storeu_epi8(out, partial, a);
      _mm512_mask_storeu_epi8(out + block_bits, partial, b);
    }
    out += 2 * block_bits;
  }
  return groups * kGroup;
}

template <typename Element>
std::size_t decode_all(const unsigned char* in, std::size_t bytes, std::uint32_t block_bits,
                       std::size_t blocks, unsigned char* out) {
  using S = Side<Element>;
  const std::size_t groups = blocks / kGroup;
  const Unpacker unpacker(block_bits, S::kBlockOfLane);
  const unsigned char* const end = in + bytes;
  for (std::size_t i = 0; i < groups; ++i, out += kGroup * kBlock * sizeof(Element)) {
    alignas(64) unsigned char copy[128];
    const unsigned char* from = in;
    if (end - in < 128) [[unlikely]] {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, in, static_cast<std::size_t>(end - in));
      from = copy;
    }
    const Vector first = _mm512_loadu_si512(from);
    const Vector second = _mm512_loadu_si512(from + 64);
    const Wide bits = {unpacker.unpack(0, first, second), unpacker.unpack(1, first, second)};
    const Vector headers = _mm512_or_si512(bits.a, bits.b);
    if (_mm512_test_epi64_mask(headers, _mm512_set1_epi64(1)) == 0) {  // zeros throughout
      std::memset(out, 0, kGroup * kBlock * sizeof(Element));
    } else {
      Group group;
      decode_bits<S::kHeaderBits>(bits, static_cast<int>(block_bits), group);
      S::store(group, out);
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
