// szp: the bound on adversarial data, judged exactly; one stream on all instruction sets; golden
// checksums of the format; payloads that lie.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec/checksum.hpp"
#include "codec/isa.hpp"
#include "codec/sum_grid.hpp"
#include "codec/szp/format.hpp"
#include "support.hpp"

namespace {

using mpress::ElementType;
using mpress::Isa;
using mpress::Mode;
using mpress::codec::Status;
namespace szp = mpress::codec::szp;

struct Random : SplitMix {
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double noise() { return unit() + unit() + unit() + unit() - 2; }
};

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
Bits<T> bits(T x) {
  Bits<T> b;
  std::memcpy(&b, &x, sizeof x);
  return b;
}

template <class T>
T from_bits(Bits<T> b) {
  T x;
  std::memcpy(&x, &b, sizeof x);
  return x;
}

const Isa all_isas[] = {Isa::portable, Isa::avx2, Isa::avx512};

// Whether |x - y| <= bound in exact arithmetic. The difference is s + e exactly (Knuth's
// two-sum); rounding is monotone, so s decides unless it equals the bound.
bool within(double x, double y, double bound) {
  if (x < y) std::swap(x, y);
  const double s = x - y;
  const double t = s - x;
  const double e = (x - (s - t)) + (-y - t);
  return s < bound || (s == bound && !(e > 0));
}

// Every kind of content, scaled such that quanta are moderate for a bound of 1e-3.
const char* const contents[] = {"zeros",    "constant", "ramp",      "parabola",     "cubic",
                                "walk",     "noise",    "offset",    "sparse",       "integers",
                                "ties",     "masked",   "all-mask",  "nan-fill",     "specials",
                                "any-bits", "denormal", "huge",      "spread",       "edge",
                                "wide",     "flips",    "two-masks", "negative-zero"};

template <class T>
std::vector<T> make(const std::string& name, std::size_t n, std::uint64_t seed = 1) {
  using Limits = std::numeric_limits<T>;
  Random random{seed};
  std::vector<T> x(n);
  double walk = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i % 3000) * 1e-3;
    const std::uint64_t r = random.next();
    double v = 0;
    if (name == "constant") v = 3.25;
    if (name == "ramp") v = 0.37 * static_cast<double>(i) * 1e-3;
    if (name == "parabola") v = t * t;
    if (name == "cubic") v = t * t * t - 2 * t * t;
    if (name == "walk") v = walk += 0.01 * random.noise();
    if (name == "noise") v = random.noise();
    if (name == "offset") v = 300 + 0.1 * random.noise();
    if (name == "sparse") v = i % 2048 < 40 ? 0.01 * random.noise() : 0;
    if (name == "integers") v = static_cast<double>(static_cast<std::int64_t>(r % 2001) - 1000);
    if (name == "ties") v = 1e-3 * (static_cast<double>(r % 4001) - 2000);
    if (name == "masked") v = i / 100 % 3 == 0 ? 1e20 : walk += 0.01 * random.noise();
    if (name == "all-mask") v = 1e20;
    if (name == "two-masks") v = i % 4096 < 1000 ? 1e20 : i % 64 < 50 ? -3e30 : walk += 0.001;
    if (name == "spread") v = std::ldexp(random.noise(), static_cast<int>(r % 60) - 40);
    if (name == "huge") v = random.noise() * static_cast<double>(Limits::max()) / 2;
    if (name == "wide") v = 4e5 * (1 + 0.5 * random.noise());
    if (name == "flips") v = 2e-3 * static_cast<double>(i / 7 + (r % 11 == 0));
    if (name == "negative-zero") v = -0.0;
    x[i] = static_cast<T>(v);
    if (name == "edge") {  // around the largest quantum at 1e-3
      const T top = static_cast<T>(2e-3) * szp::Traits<T>::max_quantum;
      x[i] = (r & 1 ? top : -top) * static_cast<T>(0.999 + 0.002 * random.unit());
    }
    if (name == "nan-fill") x[i] = from_bits<T>(bits(Limits::quiet_NaN()) | 0x1234);
    if (name == "denormal") x[i] = from_bits<T>(static_cast<Bits<T>>(r % 5000));
    if (name == "any-bits") x[i] = from_bits<T>(static_cast<Bits<T>>(r));
    if (name == "specials") {
      const T kinds[] = {Limits::quiet_NaN(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::denorm_min(),
                         T(-0.0),
                         Limits::min()};
      x[i] = r % 9 == 0 ? kinds[(r >> 8) % 8] : static_cast<T>(random.noise());
    }
  }
  return x;
}

template <class T>
std::vector<unsigned char> encode(const std::vector<T>& x, double bound, Mode mode) {
  static Guarded elements(1 << 22), payload(1 << 22);
  const std::size_t most = szp::max_bytes(type_of<T>, x.size());
  if (most > 1 << 22) std::abort();
  unsigned char* const in = elements.last(x.size() * sizeof(T));
  unsigned char* const out = payload.last(most);
  if (!x.empty()) std::memcpy(in, x.data(), x.size() * sizeof(T));
  return {out, out + szp::encode(type_of<T>, in, x.size(), bound, mode, out)};
}

template <class T>
void check_bound(const std::vector<T>& x, const std::vector<T>& y, double bound,
                 const std::string& what) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool exact = bits(x[i]) == bits(y[i]);
    const bool near = std::isfinite(x[i]) && std::isfinite(y[i]) &&
                      within(static_cast<double>(x[i]), static_cast<double>(y[i]), bound);
    if (exact || near) continue;
    CHECK(false, "%s: element %zu: %a became %a, bound %a", what.c_str(), i,
          static_cast<double>(x[i]), static_cast<double>(y[i]), bound);
    return;
  }
}

// Round trip under one bound on every instruction set: the bound holds, bytes agree.
template <class T>
std::size_t round_trip(const std::string& name, std::size_t n, double bound, Mode mode) {
  const std::vector<T> x = make<T>(name, n, n + 7);
  const std::string what = name + (sizeof(T) == 4 ? " f32 n=" : " f64 n=") + std::to_string(n) +
                           " bound=" + std::to_string(bound);
  std::vector<unsigned char> reference;
  std::vector<T> decoded;
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    const std::vector<unsigned char> payload = encode(x, bound, mode);
    if (isa == Isa::portable) {
      reference = payload;
      CHECK(payload.size() <= 32 + n * sizeof(T), "%s: %zu bytes", what.c_str(), payload.size());
    }
    CHECK(payload == reference, "%s: %s writes other bytes", what.c_str(), isa_name(isa));
    std::vector<T> y(n);
    const Status status =
        szp::decode(type_of<T>, payload.data(), payload.size(), y.data(), y.size());
    CHECK(status == Status::ok, "%s: %s: %s", what.c_str(), isa_name(isa), status_text(status));
    if (isa == Isa::portable) {
      decoded = y;
      check_bound(x, y, bound, what);
    }
    CHECK(n == 0 || std::memcmp(y.data(), decoded.data(), n * sizeof(T)) == 0,
          "%s: %s decodes other bits", what.c_str(), isa_name(isa));
  }
  return reference.size();
}

template <class T>
void test_bounds() {
  const std::size_t unit = szp::unit_elements(type_of<T>);
  const double inf = std::numeric_limits<double>::infinity();
  const double bounds[] = {1e-3,         0.5,     1e-5,   1e-7,          1.0,          1e10,
                           1e30,         3e38,    1e39,   1.7e308,       1e-37,        1e-38,
                           1e-44,        1e-306,  1e-320, 0.0,           -1.0,         inf,
                           std::nan(""), 0x1p-10, 3e-3,   0x1.000002p-3, 0x1.fffffep-3};
  for (const char* name : contents) {
    for (double bound : bounds) round_trip<T>(name, 2 * unit + 45, bound, Mode::fast);
    round_trip<T>(name, unit + 1, 1e-3, Mode::dense);
    round_trip<T>(name, unit + 1, 1e-6, Mode::dense);
  }
  for (std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{31}, std::size_t{32},
        std::size_t{33}, std::size_t{1000}, unit - 1, unit, unit + 31, 5 * unit}) {
    for (const char* name : {"walk", "masked", "specials", "any-bits", "zeros", "all-mask"}) {
      round_trip<T>(name, n, 1e-3, Mode::fast);
    }
  }
}

// Bounds a few bits wide around each power of two, where the rounding of step and limit differs.
template <class T>
void test_rounding() {
  Random random{3};
  for (int i = 0; i < 300; ++i) {
    const double bound = std::ldexp(1 + random.unit(), static_cast<int>(random.next() % 40) - 30);
    const std::size_t n = 2000;
    std::vector<T> x(n);
    const double reach = std::ldexp(bound, static_cast<int>(random.next() % 26));
    for (T& v : x) {  // next to multiples of the bound, where the error is largest
      const double multiple = std::rint(reach / bound * (2 * random.unit() - 1));
      v = static_cast<T>(multiple * bound);
      const auto shift = static_cast<int>(random.next() % 5) - 2;
      for (int k = 0; k < std::abs(shift); ++k) {
        v = std::nextafter(
            v, shift < 0 ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max());
      }
    }
    const std::vector<unsigned char> payload = encode(x, bound, Mode::fast);
    std::vector<T> y(n);
    CHECK(szp::decode(type_of<T>, payload.data(), payload.size(), y.data(), n) == Status::ok,
          "bound %a", bound);
    check_bound(x, y, bound, "multiples of the bound");
  }
}

// The cheap cases must be cheap: a few bytes a unit, not a block.
template <class T>
void test_ratios() {
  const std::size_t n = 64 * szp::unit_elements(type_of<T>);
  const auto ratio = [&](const char* name, double bound) {
    return static_cast<double>(n * sizeof(T)) /
           static_cast<double>(encode(make<T>(name, n), bound, Mode::fast).size());
  };
  CHECK(ratio("zeros", 1e-3) > 5000, "%g", ratio("zeros", 1e-3));
  CHECK(ratio("constant", 1e-3) > 1000, "%g", ratio("constant", 1e-3));
  CHECK(ratio("all-mask", 1e-3) > 200, "%g", ratio("all-mask", 1e-3));
  CHECK(ratio("nan-fill", 1e-3) > 200, "%g", ratio("nan-fill", 1e-3));
  CHECK(ratio("masked", 1e-3) > 4, "%g", ratio("masked", 1e-3));
  CHECK(ratio("noise", 1e10) > 5000, "everything rounds to 0: %g", ratio("noise", 1e10));
  // Integers at a bound of a half: an error of exactly the bound must not cost an exception.
  CHECK(ratio("integers", 0.5) > (sizeof(T) == 4 ? 2.6 : 5.2), "%g", ratio("integers", 0.5));
}

template <class T>
void test_alignment() {
  const std::vector<T> x = make<T>("masked", 5000);
  const std::size_t size = x.size() * sizeof(T);
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    const std::vector<unsigned char> expected = encode(x, 1e-3, Mode::fast);
    for (std::size_t shift = 1; shift < 8; ++shift) {
      std::vector<unsigned char> in(size + 8), out(32 + size + 8), back(size + 8);
      std::memcpy(in.data() + shift, x.data(), size);
      const std::size_t bytes = szp::encode(type_of<T>, in.data() + shift, x.size(), 1e-3,
                                            Mode::fast, out.data() + shift);
      CHECK(
          bytes == expected.size() && std::memcmp(out.data() + shift, expected.data(), bytes) == 0,
          "%s, shift %zu", isa_name(isa), shift);
      CHECK(szp::decode(type_of<T>, out.data() + shift, bytes, back.data() + shift, x.size()) ==
                Status::ok,
            "%s, shift %zu", isa_name(isa), shift);
    }
  }
}

// The decoder's view of a payload whose every byte may be wrong: memory ends at guard pages.
template <class T>
void test_corruption() {
  const std::size_t n = szp::unit_elements(type_of<T>) + 300;
  Guarded payload_memory(szp::max_bytes(type_of<T>, n));
  Guarded element_memory(n * sizeof(T));
  unsigned char* out = element_memory.last(n * sizeof(T));
  Random random{11};
  const auto sign = [](unsigned char* p, std::size_t bytes) {
    const std::uint32_t sum = mpress::checksum(p, 4, 0) + mpress::checksum(p + 8, bytes - 8, 2);
    std::memcpy(p + 4, &sum, 4);
  };
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    for (const char* name : {"masked", "sparse", "cubic", "two-masks", "wide", "any-bits"}) {
      const std::vector<unsigned char> good =
          encode(make<T>(name, n), name == std::string("wide") ? 1e-6 : 1e-3, Mode::dense);
      for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
        unsigned char* p = payload_memory.last(bytes);
        std::memcpy(p, good.data(), bytes);
        CHECK(szp::decode(type_of<T>, p, bytes, out, n) != Status::ok, "%s cut to %zu", name,
              bytes);
        if (bytes < 40) continue;
        sign(p, bytes);
        CHECK(szp::decode(type_of<T>, p, bytes, out, n) != Status::ok, "%s cut to %zu, signed",
              name, bytes);
      }
      unsigned char* p = payload_memory.last(good.size());
      for (std::size_t i = 0; i < good.size(); ++i) {
        std::memcpy(p, good.data(), good.size());
        p[i] ^= static_cast<unsigned char>(1 + random.next() % 255);
        const bool bound_field = i >= 24 && i < 32;
        CHECK(szp::decode(type_of<T>, p, good.size(), out, n) != Status::ok, "%s, byte %zu", name,
              i);
        if (i < 4 || i >= 8) sign(p, good.size());
        // With a valid checksum the change may be a valid payload; it must stay in its memory.
        const Status status = szp::decode(type_of<T>, p, good.size(), out, n);
        CHECK(!bound_field || status == Status::ok, "%s, byte %zu: the bound is a remark", name, i);
      }
      for (int i = 0; i < 300; ++i) {  // heavier damage
        std::memcpy(p, good.data(), good.size());
        for (int k = 0; k < 6; ++k) {
          p[32 + random.next() % (good.size() - 32)] = static_cast<unsigned char>(random.next());
        }
        sign(p, good.size());
        szp::decode(type_of<T>, p, good.size(), out, n);
      }
      std::vector<unsigned char> longer = good;
      longer.resize(good.size() + 4);
      sign(longer.data(), longer.size());
      CHECK(szp::decode(type_of<T>, longer.data(), longer.size(), out, n) == Status::corrupt,
            "%s with a word more", name);
    }
  }
  const std::vector<unsigned char> good = encode(make<T>("walk", n), 1e-3, Mode::fast);
  CHECK(szp::decode(type_of<T>, good.data(), good.size(), out, n - 1) == Status::corrupt,
        "another count");
  std::vector<unsigned char> other = good;
  other[0] = 99;
  CHECK(szp::decode(type_of<T>, other.data(), other.size(), out, n) == Status::unsupported,
        "another version");
}

void test_resolvable() {
  CHECK(mpress::codec::resolvable(ElementType::f32, 1e-3), "f32 1e-3");
  CHECK(mpress::codec::resolvable(ElementType::f32, 1e300), "a step may be finer than asked for");
  CHECK(!mpress::codec::resolvable(ElementType::f32, 1e-39), "f32 below the normal numbers");
  CHECK(mpress::codec::resolvable(ElementType::f64, 1e-39), "f64 1e-39");
  CHECK(!mpress::codec::resolvable(ElementType::f64, 1e-310), "f64 below the normal numbers");
  for (double bound : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK(!mpress::codec::resolvable(ElementType::f64, bound), "%g", bound);
  }
}

struct Golden {
  const char* name;
  Mode mode;
  std::uint32_t f32, f64;
};

// Formats are frozen: these change only together with format_version.
const Golden golden[] = {{"walk", Mode::fast, 0x99B73140, 0xBA942B30},
                         {"noise", Mode::fast, 0xB12C8B54, 0x9B376C56},
                         {"cubic", Mode::dense, 0x1BE59054, 0x81785E80},
                         {"masked", Mode::fast, 0x197269F4, 0x989D35EA},
                         {"two-masks", Mode::fast, 0x9D88FE48, 0x79F8077C},
                         {"wide", Mode::fast, 0x0F273712, 0x741371AE},
                         {"offset", Mode::fast, 0xEA64C85A, 0xE1EA23A6},
                         {"sparse", Mode::fast, 0xCCFA7A04, 0x7C289F5A},
                         {"specials", Mode::fast, 0x2DB98A6A, 0xC8D88B0C},
                         {"integers", Mode::fast, 0xF078D524, 0x55622B40}};

template <class T>
std::uint32_t golden_sum(const Golden& g) {
  const std::vector<unsigned char> payload = encode(make<T>(g.name, 10000), 1e-3, g.mode);
  return mpress::checksum(payload.data(), payload.size());
}

void test_golden() {
  for (const Golden& g : golden) {
    CHECK(golden_sum<float>(g) == g.f32, "%s f32: 0x%08X", g.name, golden_sum<float>(g));
    CHECK(golden_sum<double>(g) == g.f64, "%s f64: 0x%08X", g.name, golden_sum<double>(g));
  }
}

}  // namespace

int main() {
  test_bounds<float>();
  test_bounds<double>();
  test_rounding<float>();
  test_rounding<double>();
  test_ratios<float>();
  test_ratios<double>();
  test_alignment<float>();
  test_alignment<double>();
  test_corruption<float>();
  test_corruption<double>();
  test_resolvable();
  test_golden();
  if (failures == 0) std::printf("szp: ok\n");
  return failures == 0 ? 0 : 1;
}
