// szp: sums of payloads are exact sums of quanta, in the bytes that the encoder writes for them,
// whatever the order and the instruction set; what cannot be summed is reported.
#include "szp_sums.hpp"

#include <cmath>
#include <limits>

namespace {

template <class T>
void test_sums() {
  const std::size_t unit = szp::unit_elements(type_of<T>);
  const std::pair<Mode, Mode> modes[] = {
      {Mode::fast, Mode::fast}, {Mode::dense, Mode::dense}, {Mode::fast, Mode::dense}};
  for (std::size_t n : {std::size_t{777}, unit - 3, unit, 2 * unit + 101, 3 * unit}) {
    for (const char* left : contents) {
      for (const char* right : contents) {
        const std::string what = std::string(left) + " + " + right + ", " + std::to_string(n);
        const Quanta a = make<T>(left, n, 3);
        const Quanta b = make<T>(right, n, 4);
        for (const auto& [mode_a, mode_b] : modes) {
          const Payload from_a = encode<T>(a, mode_a);
          const Payload from_b = encode<T>(b, mode_b);
          Payload first;
          for (Isa isa : all_isas) {
            if (!mpress::set_host_isa(isa)) continue;
            const Payload sum = sum_of<T>(from_a, from_b, n, what);
            if (isa == Isa::portable) first = sum;
            CHECK(sum == first, "%s: %s writes other bytes", what.c_str(), isa_name(isa));
          }
          CHECK(holds<T>(first, a + b), "%s", what.c_str());
          CHECK(canonical<T>(first, a + b, mode_b), "%s", what.c_str());
          CHECK(sum_of<T>(from_b, from_a, n, what) == first, "%s: the other way", what.c_str());
        }
      }
    }
  }
}

// Nothing is left where summands cancel: empty units, as if nothing had ever been there.
template <class T>
void test_cancelling() {
  const std::size_t n = 3 * szp::unit_elements(type_of<T>) + 100;
  const Quanta zero(n);
  for (const char* name : contents) {
    const Quanta a = make<T>(name, n, 5);
    Quanta minus(a);
    for (std::int64_t& q : minus) q = -q;
    const Payload sum = sum_of<T>(encode<T>(a), encode<T>(minus), n, name);
    CHECK(canonical<T>(sum, zero, Mode::fast), "%s", name);
    CHECK(canonical<T>(sum_of<T>(sum, encode<T>(a), n, name), a, Mode::fast), "%s", name);
  }
}

template <class T>
void test_empty() {
  const Payload nothing = encode<T>(Quanta{});
  const Payload sum = sum_of<T>(nothing, nothing, 0, "empty");
  CHECK(holds<T>(sum, {}), "empty");
  CHECK(sum_of<T>(sum, nothing, 0, "empty") == sum, "empty");
}

// Real numbers, one order after the other; growth of widths, from narrow to wide in f64.
template <class T>
void test_orders() {
  const std::size_t n = 2 * szp::unit_elements(type_of<T>) + 333;
  const std::size_t parts = 512;
  SplitMix random{17};
  std::vector<Payload> payloads;
  std::vector<long double> exact(n);
  std::vector<long double> travel(n);  // sum of |q|
  const long double step = step_of<T>();
  for (std::size_t k = 0; k < parts; ++k) {
    std::vector<T> x(n);
    const double height = sizeof(T) == 4 ? 20 : 2e3;
    for (std::size_t i = 0; i < n; ++i) {
      const double noise = static_cast<double>(random.next() >> 11) * 0x1p-53;
      x[i] = static_cast<T>(height * (0.9 + std::sin(static_cast<double>(i + 7 * k) * 1e-3)) +
                            0.1 * noise);
      exact[i] += x[i];
    }
    payloads.push_back(encode(x, k % 3 == 0 ? Mode::dense : Mode::fast));
    std::vector<T> y(n);
    szp::decode(type_of<T>, payloads[k].data(), payloads[k].size(), y.data(), n);
    for (std::size_t i = 0; i < n; ++i) travel[i] += std::abs(std::rint(y[i] / step));
  }
  Payload one_by_one = payloads[0];
  for (std::size_t k = 1; k < parts; ++k) {
    one_by_one = sum_of<T>(one_by_one, payloads[k], n, "one by one");
  }
  for (int shuffle = 0; shuffle < 2; ++shuffle) {
    std::vector<Payload> tree = payloads;
    for (std::size_t k = parts; k > 1; --k) std::swap(tree[k - 1], tree[random.next() % k]);
    for (std::size_t left = parts; left > 1;) {  // neighbours, or any two
      const std::size_t a = shuffle == 0 ? left % 3 % (left - 1) : random.next() % (left - 1);
      tree[a] = sum_of<T>(tree[a], tree[left - 1], n, "tree");
      tree.resize(--left);
    }
    CHECK(tree[0] == one_by_one, "another order, other bytes");
  }
  const long double promised = header_of(one_by_one).bound;
  CHECK(promised >= 512.0L * bound && promised < 512.0L * bound * (1 + 0x1p-30L), "%Lg", promised);
  std::vector<T> y(n);
  szp::decode(type_of<T>, one_by_one.data(), one_by_one.size(), y.data(), n);
  const long double ulp = sizeof(T) == 4 ? 0x1p-24L : 0x1p-53L;
  for (std::size_t i = 0; i < n; ++i) {
    const long double rounding = ulp * step * (travel[i] + std::abs(y[i] / step));
    const long double error = std::abs(y[i] - exact[i]);
    if (error <= promised + rounding) continue;
    CHECK(false, "element %zu is off by %Lg, promised %Lg + %Lg", i, error, promised, rounding);
    break;
  }
}

// Sums stay exact up to the limit, and are refused beyond it.
template <class T>
void test_limit() {
  const std::size_t n = szp::unit_elements(type_of<T>);
  const auto limit = static_cast<std::int64_t>(szp::Traits<T>::sum_limit);
  const std::int64_t eighth = limit / 8;  // not beyond what the encoder quantises exactly
  Quanta q(n), minus(n);
  for (std::size_t i = 0; i < n; ++i) q[i] = i % 3 == 0 ? eighth : i % 3 == 1 ? -eighth : 0;
  for (std::size_t i = 0; i < n; ++i) minus[i] = -(q[i] > 0);
  const Payload one = encode<T>(q);
  CHECK(holds<T>(one, q), "not the quanta that were meant");
  const Payload two = sum_of<T>(one, one, n, "two");
  const Payload four = sum_of<T>(two, two, n, "four");
  const Payload six = sum_of<T>(four, two, n, "six");
  const Payload seven = sum_of<T>(six, one, n, "seven");
  const Payload less = sum_of<T>(one, encode<T>(minus), n, "one less");
  const Payload most = sum_of<T>(seven, less, n, "from -limit to limit - 1");
  Quanta expected(n);
  for (std::size_t i = 0; i < n; ++i) expected[i] = 8 * q[i] - (q[i] > 0);
  CHECK(holds<T>(most, expected), "sums at the limit");
  Payload out;
  CHECK(add<T>(seven, one, n, out) == Status::inexact, "the limit itself");
  CHECK(add<T>(most, most, n, out) == Status::inexact, "beyond the limit");
  CHECK(add<T>(most, encode<T>(minus), n, out) == Status::ok, "smaller again");
}

template <class T>
void test_refusals() {
  const std::size_t n = 2 * szp::unit_elements(type_of<T>);
  const Payload good = encode<T>(make<T>("noise", n, 1));
  Payload out;
  const auto refused = [&](const Payload& other, Status expected, const char* what) {
    for (Isa isa : all_isas) {
      if (!mpress::set_host_isa(isa)) continue;
      const Status left = add<T>(other, good, n, out);
      const Status right = add<T>(good, other, n, out);
      CHECK(left == expected && right == expected, "%s, %s: %s, %s", what, isa_name(isa),
            status_text(left), status_text(right));
    }
  };
  std::vector<T> x = values<T>(make<T>("noise", n, 2));
  x[n / 2 + 5] = std::numeric_limits<T>::quiet_NaN();
  refused(encode(x), Status::inexact, "an exception");
  SplitMix random{8};
  for (std::size_t i = 0; i < n / 2; ++i) {
    x[i] = static_cast<T>(1e30 * static_cast<double>(random.next()));
  }
  refused(encode(x), Status::inexact, "a raw unit");
  refused(encode(x, Mode::fast, 0.0), Status::inexact, "a raw payload");
  const std::vector<T> y = values<T>(make<T>("noise", n, 2));
  refused(encode(y, Mode::fast, 2e-3), Status::mismatched, "another step");
  refused(encode<T>(Quanta(n - 1)), Status::corrupt, "another count");
  using Other = std::conditional_t<sizeof(T) == 4, double, float>;
  refused(encode<Other>(Quanta(n)), Status::corrupt, "another type");
  for (double remark : {0.0, -1e-3, std::nan("")}) {
    Payload p = good;
    std::memcpy(p.data() + 24, &remark, sizeof remark);
    sign(p);
    refused(p, Status::corrupt, "a bound that is none");
  }
  Payload p = good;
  const double huge = 1e300;
  std::memcpy(p.data() + 24, &huge, sizeof huge);
  sign(p);
  refused(p, Status::inexact, "a bound of too many payloads");
  p = good;
  p[0] = 99;
  refused(p, Status::unsupported, "another version");

  // The sum of two units that compress may be one that does not.
  Quanta few(12), others(12);
  for (std::size_t i = 0; i < 12; ++i) {
    few[i] = static_cast<std::int64_t>(i % 2) * (std::int64_t{1} << (sizeof(T) == 4 ? 3 : 13));
    others[i] = 7 * few[i];
  }
  const Payload tail = encode<T>(few);
  if (header_of(tail).raw == 0) {
    Payload sum = tail;
    Status status = Status::ok;
    for (int k = 0; status == Status::ok && k < 24; ++k)
      status = add<T>(sum, Payload(sum), 12, sum);
    CHECK(status == Status::inexact, "a few elements never grew too wide");
  }
}

// Both payloads may be anything: memory ends at guard pages, and damage is reported.
template <class T>
void test_damage() {
  const std::size_t n = szp::unit_elements(type_of<T>) + 300;
  const std::size_t room = szp::max_bytes(type_of<T>, n);
  Guarded damaged_memory(room), good_memory(room), out_memory(room);
  unsigned char* out = out_memory.last(room);
  SplitMix random{23};
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    for (const char* name : {"sparse", "smooth", "large"}) {
      const Payload payload = encode<T>(make<T>(name, n, 6), Mode::dense);
      const Payload other = encode<T>(make<T>("noise", n, 7));
      unsigned char* good = good_memory.last(other.size());
      std::memcpy(good, other.data(), other.size());
      std::size_t bytes;
      const auto add_both_ways = [&](const Payload& p) {
        unsigned char* bad = damaged_memory.last(p.size());
        std::memcpy(bad, p.data(), p.size());
        const Summand pair[] = {{bad, p.size()}, {good, other.size()}};
        const Summand turned[] = {pair[1], pair[0]};
        const Status left = szp::add(type_of<T>, pair, n, out, bytes);
        const Status right = szp::add(type_of<T>, turned, n, out, bytes);
        CHECK(left == right, "%s, %s", status_text(left), status_text(right));
        if (right == Status::ok) {  // a payload like any other
          std::vector<T> x(n);
          CHECK(szp::decode(type_of<T>, out, bytes, x.data(), n) == Status::ok, "%s", name);
        }
        return left;
      };
      for (std::size_t cut = 1; cut < payload.size(); cut += 1 + random.next() % 37) {
        Payload p(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(cut));
        CHECK(add_both_ways(p) != Status::ok, "%s cut to %zu", name, cut);
        if (cut < 40) continue;
        sign(p);
        CHECK(add_both_ways(p) != Status::ok, "%s cut to %zu, signed", name, cut);
      }
      for (int k = 0; k < 2000; ++k) {  // the sections at the front more often
        const std::size_t span = std::min<std::size_t>(k % 2 == 0 ? room : 200, payload.size());
        const auto damage = [&](Payload& p) {
          p[random.next() % span] ^= static_cast<unsigned char>(1 + random.next() % 255);
        };
        Payload p = payload;
        damage(p);
        CHECK(add_both_ways(p) != Status::ok, "%s, damaged", name);
        for (std::uint64_t more = random.next() % 4; more > 0; --more) damage(p);
        sign(p);
        add_both_ways(p);
      }
    }
  }
}

template <class T>
void test_alignment() {
  const std::size_t n = 5000;
  const Payload a = encode<T>(make<T>("noise", n, 1));
  const Payload b = encode<T>(make<T>("large", n, 2));
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    const Payload expected = sum_of<T>(a, b, n, "aligned");
    for (std::size_t shift = 1; shift < 8; ++shift) {
      Payload at_a(a.size() + 16), at_b(b.size() + 16), out(szp::max_bytes(type_of<T>, n) + 16);
      std::memcpy(at_a.data() + shift, a.data(), a.size());
      std::memcpy(at_b.data() + shift + 1, b.data(), b.size());
      std::size_t bytes;
      const Summand pair[] = {{at_a.data() + shift, a.size()}, {at_b.data() + shift + 1, b.size()}};
      const Status status = szp::add(type_of<T>, pair, n, out.data() + shift, bytes);
      CHECK(status == Status::ok && bytes == expected.size() &&
                std::memcmp(out.data() + shift, expected.data(), bytes) == 0,
            "%s, shift %zu", isa_name(isa), shift);
    }
  }
}

template <class T>
void test_type() {
  test_sums<T>();
  test_cancelling<T>();
  test_empty<T>();
  test_orders<T>();
  test_limit<T>();
  test_refusals<T>();
  test_damage<T>();
  test_alignment<T>();
}

}  // namespace

int main() {
  test_type<float>();
  test_type<double>();
  if (failures == 0) std::printf("szp sums: ok\n");
  return failures == 0 ? 0 : 1;
}
