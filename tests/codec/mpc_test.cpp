// mpc: exactness on every class of bit pattern, one stream on all instruction sets, golden
// checksums of the format, and payloads that lie.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "codec/checksum.hpp"
#include "codec/isa.hpp"
#include "codec/mpc/format.hpp"
#include "support.hpp"

namespace {

using mpress::ElementType;
using mpress::Isa;
using mpress::codec::Status;
namespace mpc = mpress::codec::mpc;

struct Random : SplitMix {
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

template <class Float>
using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

template <class Float>
Word<Float> bits_of(Float x) {
  Word<Float> w;
  std::memcpy(&w, &x, sizeof(w));
  return w;
}

template <class Float>
struct Pattern {
  const char* name;
  std::function<Word<Float>(std::size_t, Random&)> element;
};

// Only +, -, * on integers and exactly rounded products: the same on every machine.
template <class Float>
std::vector<Pattern<Float>> patterns() {
  using W = Word<Float>;
  constexpr unsigned bits = sizeof(W) * 8;
  constexpr unsigned mantissa = mpc::Layout<W>::mantissa_bits;
  constexpr W sign = mpc::Layout<W>::sign;
  constexpr W infinity = W{mpc::Layout<W>::max_exponent} << mantissa;
  const auto parabola = [](std::size_t i) {
    const double x = static_cast<double>(i % 700) - 350;
    return static_cast<Float>(x * x * 0.001 - 60);
  };
  return {
      {"zero", [](std::size_t, Random&) { return W{0}; }},
      {"minus zero", [](std::size_t, Random&) { return sign; }},
      {"both zeros", [](std::size_t, Random& r) { return r.next() & 1 ? sign : W{0}; }},
      {"constant", [](std::size_t, Random&) { return bits_of(Float(1e20)); }},
      {"all ones", [](std::size_t, Random&) { return ~W{0}; }},
      {"smooth", [=](std::size_t i, Random&) { return bits_of(parabola(i)); }},
      {"noisy", [=](std::size_t i,
                    Random& r) { return bits_of(parabola(i) + static_cast<Float>(r.unit())); }},
      {"around zero", [](std::size_t, Random& r) { return bits_of(Float(r.unit() - 0.5)); }},
      {"random bits", [](std::size_t, Random& r) { return static_cast<W>(r.next()); }},
      {"denormals",
       [](std::size_t, Random& r) {
         return static_cast<W>((r.next() >> 40) | (r.next() & 1 ? sign : 0));
       }},
      {"NaN payloads", [](std::size_t, Random& r) { return static_cast<W>(infinity | r.next()); }},
      {"smooth with NaN, infinities and zeros",
       [=](std::size_t i, Random& r) {
         const std::uint64_t dice = r.next() % 64;
         if (dice == 0) return static_cast<W>(infinity | (r.next() >> 20 & 0xFFFF));
         if (dice == 1) return static_cast<W>(infinity | sign);
         if (dice == 2) return sign;
         if (dice == 3) return W{0};
         return bits_of(parabola(i));
       }},
      {"one bit", [](std::size_t i, Random&) { return W{1} << (i * 7 % bits); }},
      {"mostly zero",
       [=](std::size_t i, Random& r) {
         return i / 300 % 3 == 1 ? bits_of(Float(r.unit())) : W{0};
       }},
      {"empty units",
       [=](std::size_t i, Random&) { return i / 5000 % 2 == 1 ? bits_of(parabola(i)) : W{0}; }},
      {"extremes",
       [=](std::size_t i, Random&) {
         const W values[] = {0,
                             sign,
                             1,
                             sign | 1,
                             infinity - 1,
                             sign | (infinity - 1),
                             ~W{0},
                             static_cast<W>(~sign)};
         return values[i * 5 % 8];
       }},
      {"3-vectors",
       [=](std::size_t i, Random&) {
         const Float scale[] = {1, -1000, Float(1e-6)};
         return bits_of(parabola(i / 3) * scale[i % 3]);
       }},
  };
}

template <class Float>
std::vector<Word<Float>> make(const Pattern<Float>& pattern, std::size_t count) {
  Random random{count + 1};
  std::vector<Word<Float>> elements(count);
  for (std::size_t i = 0; i < count; ++i) elements[i] = pattern.element(i, random);
  return elements;
}

std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets;
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (mpress::set_host_isa(isa)) sets.push_back(isa);
  }
  return sets;
}

constexpr std::size_t kMostElements = 40000;

// Encodes and decodes on every instruction set, all buffers `shift` bytes off their alignment
// and ending at a guard page. Returns the payload.
template <class Float>
std::vector<unsigned char> round_trip(const std::vector<Word<Float>>& elements, unsigned dim,
                                      unsigned shift, const std::string& what) {
  static Guarded in(kMostElements * 8 + 64), out(kMostElements * 8 + 64);
  static Guarded payload(kMostElements * 8 + 128);
  const ElementType type = type_of<Float>;
  const std::size_t count = elements.size();
  const std::size_t raw = count * sizeof(Float);
  const std::size_t most = mpc::max_bytes(type, count);
  unsigned char* const from = in.last(raw + shift);
  if (raw != 0) std::memcpy(from, elements.data(), raw);

  std::vector<unsigned char> first;
  for (Isa isa : instruction_sets()) {
    mpress::set_host_isa(isa);
    const std::string who = what + ", " + mpress::isa_name(isa);
    unsigned char* const to = payload.last(most);
    const std::size_t bytes = mpc::encode(type, from, count, dim, to);
    CHECK(bytes <= most && most <= raw + 64, "%s: %zu of %zu", who.c_str(), bytes, most);
    const std::vector<unsigned char> encoded(to, to + bytes);
    if (first.empty()) first = encoded;
    CHECK(encoded == first, "%s: another stream", who.c_str());

    unsigned char* const tight = payload.last(bytes);
    std::memmove(tight, to, bytes);
    unsigned char* const back = out.last(raw + shift);
    std::memset(back, 0xA5, raw + shift);
    const Status status = mpc::decode(type, tight, bytes, back, count);
    CHECK(status == Status::ok, "%s: %s", who.c_str(), mpress::codec::status_text(status));
    CHECK(std::memcmp(back, from, raw) == 0, "%s: not the same bits", who.c_str());
    for (unsigned i = 0; i < shift; ++i) CHECK(back[raw + i] == 0xA5, "%s: overrun", who.c_str());
  }
  return first;
}

template <class Float>
void test_round_trips() {
  for (const auto& pattern : patterns<Float>()) {
    const auto check = [&](std::size_t count, unsigned dim, unsigned shift) {
      char what[120];
      std::snprintf(what, sizeof(what), "f%zu %s, %zu elements, dim %u, shift %u",
                    sizeof(Float) * 8, pattern.name, count, dim, shift);
      round_trip<Float>(make<Float>(pattern, count), dim, shift, what);
    };
    for (std::size_t count = 0; count < 40; ++count) check(count, 1, 0);
    for (std::size_t count : {63, 64, 65, 127, 128, 129, 136, 255, 256, 257, 1000, 1023, 1024, 1025,
                              2047, 2048, 2049, 4096, 10007}) {
      check(count, 1, 0);
      check(count, 1, 1 + count % 7);
    }
    for (unsigned dim = 2; dim <= mpc::kMaxDim; ++dim) check(2500, dim, dim % 4);
    for (std::size_t count : {1, 2, 7, 31, 2049}) check(count, 32, 0);
    check(kMostElements, 3, 0);
  }
}

std::uint64_t fingerprint(const std::vector<unsigned char>& bytes) {  // FNV-1a
  std::uint64_t h = 0xCBF29CE484222325u;
  for (unsigned char b : bytes) h = (h ^ b) * 0x100000001B3u;
  return h;
}

struct Golden {
  const char* pattern;
  std::size_t bytes;
  std::uint64_t fingerprint;
};

template <class Float>
void test_golden(const std::vector<Golden>& golden) {
  std::size_t k = 0;
  for (const auto& pattern : patterns<Float>()) {
    const unsigned dim = std::strcmp(pattern.name, "3-vectors") == 0 ? 3 : 1;
    const auto payload = round_trip<Float>(make<Float>(pattern, 20011), dim, 0, pattern.name);
    const std::uint64_t h = fingerprint(payload);
    const bool known = k < golden.size() && std::strcmp(golden[k].pattern, pattern.name) == 0;
    CHECK(known && golden[k].bytes == payload.size() && golden[k].fingerprint == h,
          "the stream of this pattern is now {\"%s\", %zu, 0x%016llXu},", pattern.name,
          payload.size(), static_cast<unsigned long long>(h));
    ++k;
  }
}

const std::vector<Golden> kGolden32 = {
    {"zero", 36, 0x0FE3F220B2A48F7Bu},
    {"minus zero", 116, 0xF3BAC742CCDD1DF6u},
    {"both zeros", 2748, 0xCF4AD52426F7328Fu},
    {"constant", 116, 0x1D3A8BE41565C563u},
    {"all ones", 116, 0x984201CD3AE2A845u},
    {"smooth", 35372, 0xB4EC0F9C069B4261u},
    {"noisy", 51740, 0x3E96B1D9FA9E8C6Fu},
    {"around zero", 67020, 0x4B8DD27C331F1DEBu},
    {"random bits", 80060, 0x8E8490498549A436u},
    {"denormals", 62992, 0xD1E59D10B56DA608u},
    {"NaN payloads", 60492, 0x2D3A0BE5B3115788u},
    {"smooth with NaN, infinities and zeros", 62200, 0x176CDC4701C433D7u},
    {"one bit", 74712, 0xC7AB46DF16F76586u},
    {"mostly zero", 22944, 0x81D2C3E3E6ED8783u},
    {"empty units", 17892, 0x881B231AB0A8BA1Cu},
    {"extremes", 80060, 0xBBF8E4E33151D9E5u},
    {"3-vectors", 36772, 0xB52853CDA5A04AB5u},
};

const std::vector<Golden> kGolden64 = {
    {"zero", 56, 0x4007AF1071D3B0B7u},
    {"minus zero", 296, 0x147CB2187C3AF4E8u},
    {"both zeros", 2808, 0x60763165C92CC031u},
    {"constant", 296, 0x06433EDE1453445Cu},
    {"all ones", 296, 0x19B466BDC18FA742u},
    {"smooth", 108200, 0x25FDD6DF82885731u},
    {"noisy", 124448, 0xD2496146A7EEF16Du},
    {"around zero", 137096, 0x65A0B383088273DBu},
    {"random bits", 160104, 0x41DC931973A7CCE3u},
    {"denormals", 65504, 0xC7D36E759A71A64Eu},
    {"NaN payloads", 132988, 0x7CA9B9963547D117u},
    {"smooth with NaN, infinities and zeros", 140448, 0xA57148539DEBF40Fu},
    {"one bit", 151116, 0x83DF304673F91A18u},
    {"mostly zero", 47688, 0x12BEB40F23CF4A81u},
    {"empty units", 54360, 0x984ACEEE8D0E1A3Cu},
    {"extremes", 160104, 0x1481598E94D49B5Au},
    {"3-vectors", 111524, 0xFD89FB979E1F5C9Fu},
};

template <class Float>
void test_sizes() {
  const auto size = [](const char* name, std::size_t count) {
    for (const auto& pattern : patterns<Float>()) {
      if (std::strcmp(pattern.name, name) == 0) {
        return round_trip<Float>(make<Float>(pattern, count), 1, 0, name).size();
      }
    }
    return std::size_t{0};
  };
  const std::size_t raw = kMostElements * sizeof(Float);
  CHECK(size("zero", kMostElements) * 2000 < raw, "empty units must cost next to nothing");
  CHECK(size("constant", kMostElements) * 400 < raw, "fill values must cost next to nothing");
  CHECK(size("random bits", kMostElements) == raw + sizeof(mpc::Header), "must be raw");
  CHECK(size("around zero", kMostElements) * 100 < raw * 92, "signs and exponents must shrink");
}

// Restores the checksum, so that decode() looks at what the payload says.
void repair(std::vector<unsigned char>& payload) {
  std::memset(payload.data() + mpc::kChecksumOffset, 0, 4);
  const std::uint32_t sum = mpress::checksum(payload.data(), payload.size());
  std::memcpy(payload.data() + mpc::kChecksumOffset, &sum, 4);
}

template <class Float>
void test_corruption() {
  constexpr std::size_t count = 2 * mpc::kUnit<Word<Float>> + 777;
  const ElementType type = type_of<Float>;
  Guarded memory(mpc::max_bytes(type, count) + 64), out(count * sizeof(Float));
  const auto decode = [&](const std::vector<unsigned char>& payload) {
    unsigned char* const at = memory.last(payload.size());
    if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
    return mpc::decode(type, at, payload.size(), out.last(count * sizeof(Float)), count);
  };

  for (const auto& pattern : patterns<Float>()) {
    const unsigned dim = std::strcmp(pattern.name, "3-vectors") == 0 ? 3 : 1;
    const std::string name =
        std::string("f") + std::to_string(sizeof(Float) * 8) + " " + pattern.name;
    const auto good = round_trip<Float>(make<Float>(pattern, count), dim, 0, name);
    const bool whole = std::strcmp(pattern.name, "noisy") == 0;
    for (Isa isa : instruction_sets()) {
      mpress::set_host_isa(isa);
      Random random{7};
      for (std::size_t i = 0; i < good.size(); i += whole ? 1 : 1 + random.next() % 97) {
        auto bad = good;
        bad[i] ^= static_cast<unsigned char>(1 + random.next() % 255);
        CHECK(decode(bad) != Status::ok, "%s: byte %zu changed unseen", name.c_str(), i);
      }
      for (std::size_t n = 0; n < good.size(); n += whole ? 1 : 1 + random.next() % 97) {
        CHECK(decode({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}) != Status::ok,
              "%s: cut to %zu bytes unseen", name.c_str(), n);
      }
      auto longer = good;
      longer.resize(good.size() + 4);
      CHECK(decode(longer) != Status::ok, "%s: longer unseen", name.c_str());
    }

    // Lies with a good checksum: whatever comes out, nothing is touched outside the buffers and
    // all instruction sets agree.
    Random random{11};
    for (int round = 0; round < 300; ++round) {
      auto bad = good;
      const std::size_t reach = round % 2 ? bad.size() : 64 < bad.size() ? 64 : bad.size();
      for (std::uint64_t k = random.next() % 4 + 1; k > 0; --k) {
        bad[sizeof(mpc::Header) % reach + random.next() % (reach - sizeof(mpc::Header) % reach)] =
            static_cast<unsigned char>(random.next());
      }
      if (round % 5 == 0) bad.resize(random.next() % bad.size() / 4 * 4 + sizeof(mpc::Header));
      repair(bad);
      std::vector<unsigned char> first;
      for (Isa isa : instruction_sets()) {
        mpress::set_host_isa(isa);
        const Status status = decode(bad);
        std::vector<unsigned char> seen(1, static_cast<unsigned char>(status));
        const unsigned char* const result = out.last(count * sizeof(Float));
        if (status == Status::ok) seen.insert(seen.end(), result, result + count * sizeof(Float));
        if (first.empty()) first = seen;
        CHECK(seen == first, "%s: instruction sets disagree on lie %d", name.c_str(), round);
      }
    }
  }
}

void test_header() {
  const auto elements = make<float>(patterns<float>()[5], 3000);
  const auto good = round_trip<float>(elements, 1, 0, "header");
  std::vector<float> out(4000);
  const auto decode = [&](std::size_t at, unsigned char value) {
    auto bad = good;
    bad[at] = value;
    repair(bad);
    return mpc::decode(ElementType::f32, bad.data(), bad.size(), out.data(), 3000);
  };
  CHECK(decode(0, mpc::kVersion + 1) == Status::unsupported, "version");
  CHECK(decode(1, 2) == Status::unsupported, "flags");
  CHECK(decode(2, 0) == Status::corrupt, "dim 0");
  CHECK(decode(2, 33) == Status::corrupt, "dim 33");
  CHECK(decode(3, 2) == Status::corrupt, "type");
  CHECK(
      mpc::decode(ElementType::f32, good.data(), good.size(), out.data(), 2999) == Status::corrupt,
      "fewer elements");
  CHECK(
      mpc::decode(ElementType::f32, good.data(), good.size(), out.data(), 3001) == Status::corrupt,
      "more elements");
}

void test_choose_dim() {
  constexpr std::size_t count = 30000;
  for (unsigned components : {1u, 2u, 3u, 4u, 6u, 9u, 16u, 32u}) {
    Random random{components};
    std::vector<double> at(components), step(components);
    for (unsigned c = 0; c < components; ++c) {
      at[c] = (random.unit() - 0.5) * static_cast<double>(1ull << (3 * c % 31));
      step[c] = at[c] * 1e-4;
    }
    std::vector<float> narrow(count);
    std::vector<double> wide(count);
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned c = i % components;
      at[c] += step[c] * random.unit();
      wide[i] = at[c];
      narrow[i] = static_cast<float>(at[c]);
    }
    const unsigned narrow_dim = mpc::choose_dim(ElementType::f32, narrow.data(), count);
    const unsigned wide_dim = mpc::choose_dim(ElementType::f64, wide.data(), count);
    CHECK(narrow_dim == components, "f32: %u components, chose %u", components, narrow_dim);
    CHECK(wide_dim == components, "f64: %u components, chose %u", components, wide_dim);
  }
  const auto noise = make<float>(patterns<float>()[8], count);
  CHECK(mpc::choose_dim(ElementType::f32, noise.data(), count) == 1, "noise has no structure");
  CHECK(mpc::choose_dim(ElementType::f32, noise.data(), 0) == 1, "no elements");
}

}  // namespace

int main() {
  test_round_trips<float>();
  test_round_trips<double>();
  test_golden<float>(kGolden32);
  test_golden<double>(kGolden64);
  test_sizes<float>();
  test_sizes<double>();
  test_corruption<float>();
  test_corruption<double>();
  test_header();
  test_choose_dim();
  if (failures != 0) std::printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
