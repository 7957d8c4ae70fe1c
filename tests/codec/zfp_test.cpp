// zfp: libzfp's stream (golden checksums), one stream and one result on all instruction sets,
// partial blocks, tiny values, exceptions, and payloads that lie.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "codec/checksum.hpp"
#include "codec/isa.hpp"
#include "codec/zfp/format.hpp"
#include "support.hpp"

namespace {

using mpress::ElementType;
using mpress::Isa;
using mpress::codec::Status;
namespace zfp = mpress::codec::zfp;
using Bytes = std::vector<unsigned char>;

constexpr Isa kIsas[] = {Isa::portable, Isa::avx2, Isa::avx512};

Guarded guarded_in(1 << 16), guarded_out(1 << 16);

// ---- Fields without libm, the same everywhere -----------------------------------------------

struct Random : SplitMix {
  explicit Random(std::uint64_t seed) : SplitMix{seed} {}
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  double unit() { return static_cast<double>(next() >> 12) * 0x1p-51 - 1; }  // [-1, 1)
};

constexpr int kKinds = 9;

// Kinds 7 and 8 hold values below libzfp's limit; the others are libzfp's domain.
template <typename T>
std::vector<T> field(int kind, std::size_t count) {
  Random random(static_cast<std::uint64_t>(kind) + 1);
  constexpr int top = sizeof(T) == 4 ? 126 : 1022;
  constexpr int bottom = sizeof(T) == 4 ? -97 : -961;
  std::vector<T> v(count);
  double walk = 0, slope = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double noise = random.unit();
    const int choice = random.below(1 << 16);
    double x = 0;
    switch (kind) {
      case 0: slope = (slope + noise * 0x1p-8) * 0.875, x = walk += slope; break;
      case 1: x = noise; break;
      case 2: x = 1.5; break;
      case 3: x = i / 4 % 3 == 0 ? 0 : std::ldexp(noise, -8 * (choice % 4)); break;
      case 4: x = choice % 200 - 100; break;
      case 5:
        x = std::ldexp(1 + std::fabs(noise) / 2, bottom + choice % (top - bottom));
        if (noise < 0) x = -x;
        break;
      case 6: x = i % 4 == 2 ? std::ldexp(1.75, top) : noise; break;
      case 7: x = std::ldexp(noise, bottom - 1 - choice % 52); break;
      case 8:
        x = std::ldexp(noise, (sizeof(T) == 4 ? -126 : -1022) - static_cast<int>(i / 4 % 53));
        break;  // subnormal
    }
    v[i] = static_cast<T>(x);
  }
  return v;
}

template <typename T>
Bytes encode(const std::vector<T>& v, std::uint32_t bits) {
  const std::size_t most = zfp::max_bytes(type_of<T>, v.size(), bits);
  unsigned char* in = guarded_in.last(v.size() * sizeof(T));
  unsigned char* out = guarded_out.last(most);
  if (!v.empty()) std::memcpy(in, v.data(), v.size() * sizeof(T));
  const std::size_t bytes = zfp::encode(type_of<T>, in, v.size(), bits, out);
  CHECK(bytes <= most, "%zu > %zu", bytes, most);
  return Bytes(out, out + bytes);
}

template <typename T>
Status decode(const Bytes& payload, std::uint32_t bits, std::vector<T>& v) {
  unsigned char* in = guarded_in.last(payload.size());
  unsigned char* out = guarded_out.last(v.size() * sizeof(T));
  if (!payload.empty()) std::memcpy(in, payload.data(), payload.size());
  const Status status = zfp::decode(type_of<T>, in, payload.size(), bits, out, v.size());
  if (!v.empty()) std::memcpy(v.data(), out, v.size() * sizeof(T));
  return status;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

void seal(Bytes& payload) {  // as an adversary can
  const std::size_t at = payload.size() - 4;
  const std::uint32_t sum = mpress::checksum(payload.data(), at);
  std::memcpy(payload.data() + at, &sum, 4);
}

template <typename Function>
void on_every_isa(Function function) {
  for (const Isa isa : kIsas) {
    if (mpress::set_host_isa(isa)) function(isa);
  }
}

// ---- The stream -----------------------------------------------------------------------------

void test_golden_vector() {
  const Bytes payload = encode<float>({1, 2, 3, 4}, 64);
  std::uint64_t word = 0;
  std::memcpy(&word, payload.data(), 8);
  CHECK(word == 0xb3105, "%llx", static_cast<unsigned long long>(word));
  CHECK(payload.size() == 8 + sizeof(zfp::Footer), "%zu", payload.size());
}

// Checksums of the streams that libzfp 1.0.1 writes for the fields 0..6 (1000 + kind elements,
// so that all sizes of the last block occur), one after another; decoded values likewise.
struct Golden {
  std::uint32_t bits, stream, values;
};
constexpr Golden kGolden32[] = {
    {9, 0x09a62661, 0x00000000},  {10, 0x26edb982, 0xfc000000},  {16, 0x247e5881, 0x31c00000},
    {23, 0x7f955921, 0x9e980000}, {32, 0xeb5f4e84, 0x5c634000},  {48, 0x19ae6219, 0x669e8900},
    {61, 0x326e9891, 0x47901dda}, {64, 0xd08a3ca8, 0x9737cd9a},  {65, 0xe1dc7cb0, 0xf7ad197a},
    {96, 0xab826c5d, 0x3fc1e639}, {127, 0x9b160ca8, 0xe201f07a}, {128, 0xd02eec3c, 0xfcfca2f9},
};
constexpr Golden kGolden64[] = {
    {12, 0x47a7748e, 0x00000000},  {13, 0xbce7c672, 0x13000000},  {16, 0xa3434cd3, 0xfa900000},
    {23, 0x0ea64592, 0xabe10000},  {32, 0x3bd79974, 0x74092000},  {48, 0x3b18aeec, 0x14b21ea0},
    {61, 0x8dcd56b8, 0x098125b4},  {64, 0x40b8356c, 0xc76f275c},  {65, 0x6122c1cf, 0x4280fb6c},
    {128, 0x8e23272b, 0xdd55722e}, {200, 0x82522c4d, 0xbacdd195}, {256, 0x6ec6365d, 0x0b67883d},
};

template <typename T>
void test_golden(const Golden& golden, Isa isa) {
  std::uint32_t stream = 0, values = 0;
  for (int kind = 0; kind < 7; ++kind) {
    const auto v = field<T>(kind, 1000 + static_cast<std::size_t>(kind));
    const Bytes payload = encode(v, golden.bits);
    const std::size_t bytes = zfp::stream_bytes(type_of<T>, v.size(), golden.bits);
    std::vector<T> w(v.size());
    CHECK(decode(payload, golden.bits, w) == Status::ok, "bits %u", golden.bits);
    const auto index = static_cast<std::uint32_t>(kind) * 0x10000u;
    stream += mpress::checksum(payload.data(), bytes, index);
    values += mpress::checksum(w.data(), w.size() * sizeof(T), index);
  }
  CHECK(stream == golden.stream && values == golden.values, "f%zu on %s: {%u, 0x%08x, 0x%08x}",
        8 * sizeof(T), mpress::isa_name(isa), golden.bits, stream, values);
}

// Whatever the budget, the length and the stream, all instruction sets write and read the same.
template <typename T>
void test_isas_agree() {
  Random random(99);
  const std::uint32_t most = zfp::max_block_bits(type_of<T>);
  for (std::uint32_t bits = zfp::min_block_bits(type_of<T>); bits <= most;
       bits += bits < 72 ? 1 : 13) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto count =
          static_cast<std::size_t>(kind == 0 ? 1 + random.below(80) : 120 + random.below(150));
      auto v = field<T>(kind, count);
      if (kind == 3) v[count / 2] = std::numeric_limits<T>::infinity();
      if (kind == 2) {  // whole groups of vector kernels, and half ones
        for (std::size_t i = 0; i < 24 * 4; ++i) v[i] = i % 2 == 0 ? T(-0.0) : T(0);
      }
      mpress::set_host_isa(Isa::portable);
      const Bytes payload = encode(v, bits);
      // A stream that no encoder wrote, with few and with many ones.
      Bytes wild = payload;
      const std::size_t stream = std::min(zfp::stream_bytes(type_of<T>, count, bits),
                                          payload.size() - sizeof(zfp::Footer));  // or raw
      for (std::size_t i = 0; i < stream; ++i) {
        const std::uint64_t r = random.next();
        wild[i] = static_cast<unsigned char>(kind % 2 != 0 ? r & r >> 8 & r >> 16 : r);
      }
      seal(wild);
      std::vector<T> plain(count), wild_plain(count);
      CHECK(decode(payload, bits, plain) == Status::ok, "bits %u", bits);
      CHECK(decode(wild, bits, wild_plain) == Status::ok, "bits %u", bits);
      on_every_isa([&](Isa isa) {
        CHECK(encode(v, bits) == payload, "%s, f%zu, bits %u, kind %d", mpress::isa_name(isa),
              8 * sizeof(T), bits, kind);
        std::vector<T> w(count);
        CHECK(decode(payload, bits, w) == Status::ok && same_bits(w, plain),
              "%s, f%zu, bits %u, kind %d", mpress::isa_name(isa), 8 * sizeof(T), bits, kind);
        CHECK(decode(wild, bits, w) == Status::ok && same_bits(w, wild_plain),
              "%s, f%zu, bits %u, kind %d", mpress::isa_name(isa), 8 * sizeof(T), bits, kind);
      });
    }
  }
}

template <typename T>
void test_partial_blocks() {
  const T a = T(1.25), b = T(-7), c = T(3);
  const auto stream = [](const std::vector<T>& v) {
    Bytes payload = encode(v, 40);
    payload.resize(8);
    return payload;
  };
  CHECK(stream({a}) == stream({a, a, a, a}), "one element");
  CHECK(stream({a, b}) == stream({a, b, b, a}), "two elements");
  CHECK(stream({a, b, c}) == stream({a, b, c, a}), "three elements");
  std::vector<T> none;
  CHECK(decode(encode(none, 40), 40, none) == Status::ok, "no element");
}

// Blocks of tiny values are as precise as any: scaled up exactly, they give the same decoding.
template <typename T>
void test_tiny_values() {
  constexpr int down = sizeof(T) == 4 ? -120 : -1000;
  const std::uint32_t bits = sizeof(T) == 4 ? 40 : 44;
  auto v = field<T>(1, 256);
  auto tiny = v;
  for (T& x : tiny) x = std::ldexp(x, down);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::ldexp(tiny[i], -down);
  std::vector<T> w(v.size()), tiny_w(v.size());
  CHECK(decode(encode(v, bits), bits, w) == Status::ok, "scaled");
  CHECK(decode(encode(tiny, bits), bits, tiny_w) == Status::ok, "tiny");
  for (T& x : w) x = std::ldexp(x, down);
  CHECK(same_bits(w, tiny_w), "tiny values decode otherwise");

  // At the full rate nothing but the transform's own rounding is lost.
  const std::uint32_t full = zfp::max_block_bits(type_of<T>);
  const auto least = field<T>(7, 256);
  std::vector<T> back(least.size());
  CHECK(decode(encode(least, full), full, back) == Status::ok, "full rate");
  for (std::size_t i = 0; i < least.size(); i += 4) {
    double largest = 0, error = 0;
    for (std::size_t k = i; k < i + 4; ++k) {
      largest = std::fmax(largest, std::fabs(static_cast<double>(least[k])));
      error = std::fmax(error, std::fabs(static_cast<double>(least[k]) - back[k]));
    }
    const double unit = std::numeric_limits<T>::denorm_min();
    CHECK(error <= largest * std::numeric_limits<T>::epsilon() * 4 + unit, "block %zu: %g of %g",
          i / 4, error, largest);
  }
}

// ---- Exceptions -----------------------------------------------------------------------------

template <typename T>
void test_exceptions() {
  const std::uint32_t bits = 32;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto clean = field<T>(0, 403);
  std::vector<T> expected(clean.size());
  CHECK(decode(encode(clean, bits), bits, expected) == Status::ok, "clean");
  auto v = clean;
  for (const std::size_t i : {std::size_t{0}, std::size_t{77}, std::size_t{402}}) {
    v[i] = i == 77 ? -inf : std::copysign(nan, T(-1));
    for (std::size_t k = i / 4 * 4; k < i / 4 * 4 + 4 && k < v.size(); ++k) expected[k] = v[k];
  }
  const Bytes payload = encode(v, bits);
  CHECK(payload.size() == zfp::stream_bytes(type_of<T>, v.size(), bits) +
                              3 * zfp::exception_bytes(type_of<T>) + sizeof(zfp::Footer),
        "%zu", payload.size());
  std::vector<T> w(v.size());
  CHECK(decode(payload, bits, w) == Status::ok && same_bits(w, expected), "three exceptions");

  // Too many of them, or no room: all elements raw.
  const std::uint32_t full = zfp::max_block_bits(type_of<T>);
  const std::vector<T> all(403, nan);
  CHECK(decode(encode(all, bits), bits, w) == Status::ok && same_bits(w, all), "all exceptions");
  CHECK(decode(encode(v, full), full, w) == Status::ok && same_bits(w, v), "no room");
}

// ---- Payloads that lie ----------------------------------------------------------------------

template <typename T>
void test_damage(const std::vector<T>& v, std::uint32_t bits, const char* form) {
  const Bytes payload = encode(v, bits);
  std::vector<T> w(v.size());
  CHECK(decode(payload, bits, w) == Status::ok, "%s", form);
  Random random(5);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    Bytes damaged = payload;
    damaged[i] ^= static_cast<unsigned char>(1 + random.below(255));
    CHECK(decode(damaged, bits, w) != Status::ok, "%s: byte %zu", form, i);
    CHECK(decode(Bytes(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(i)), bits,
                 w) != Status::ok,
          "%s: %zu of %zu bytes", form, i, payload.size());
  }
  for (const int more : {1, 4, 8, 16, 24, 40}) {
    Bytes longer = payload;
    longer.insert(longer.begin(), static_cast<std::size_t>(more), 0);
    CHECK(decode(longer, bits, w) != Status::ok, "%s: %d bytes more", form, more);
    seal(longer);
    CHECK(decode(longer, bits, w) != Status::ok, "%s: %d bytes more, sealed", form, more);
  }
}

// Sums are right, contents are not.
void test_forged() {
  const std::uint32_t bits = 32;
  auto v = field<float>(0, 403);
  v[8] = v[100] = v[401] = std::numeric_limits<float>::infinity();
  const Bytes payload = encode(v, bits);
  const std::size_t stream = zfp::stream_bytes(ElementType::f32, v.size(), bits);
  const std::size_t footer = payload.size() - sizeof(zfp::Footer);
  std::vector<float> w(v.size());
  const auto forge = [&](std::size_t at, std::uint64_t value, std::size_t bytes, const char* what) {
    Bytes forged = payload;
    std::memcpy(forged.data() + at, &value, bytes);
    seal(forged);
    CHECK(decode(forged, bits, w) != Status::ok, "%s", what);
  };
  forge(stream, 25, 8, "an exception twice");
  forge(stream, 26, 8, "exceptions out of order");
  forge(stream + 2 * zfp::exception_bytes(ElementType::f32), 101, 8, "a block beyond the end");
  forge(stream, ~0ull, 8, "a block far beyond the end");
  forge(footer, 2, 8, "fewer exceptions");
  forge(footer, 4, 8, "more exceptions");
  forge(footer, 1ull << 61, 8, "exceptions whose size overflows");
  forge(footer + 8, zfp::kFormRaw, 4, "raw of another size");
  forge(footer + 8, 0, 4, "an unknown form");
  for (const std::uint32_t wrong : {0u, 8u, 129u, ~0u}) {
    CHECK(decode(payload, wrong, w) == Status::unsupported, "%u bits", wrong);
  }
}

}  // namespace

int main() {
  on_every_isa([](Isa isa) {
    test_golden_vector();
    for (const Golden& golden : kGolden32) test_golden<float>(golden, isa);
    for (const Golden& golden : kGolden64) test_golden<double>(golden, isa);
    test_partial_blocks<float>();
    test_partial_blocks<double>();
    test_tiny_values<float>();
    test_tiny_values<double>();
    test_exceptions<float>();
    test_exceptions<double>();
    test_damage(field<float>(0, 203), 37, "stream");
    test_damage(field<double>(0, 101), 48, "stream");
    auto v = field<float>(0, 203);
    v[3] = v[202] = std::numeric_limits<float>::quiet_NaN();
    test_damage(v, 37, "exceptions");
    test_damage(std::vector<float>(99, std::numeric_limits<float>::infinity()), 37, "raw");
  });
  test_isas_agree<float>();
  test_isas_agree<double>();
  test_forged();
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
