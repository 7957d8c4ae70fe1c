// szp: many payloads are added at once as two by two, and partial sums beyond the limit do no harm.
#include "szp_sums.hpp"

namespace {

// Many at once are what they are one by one, in any order.
template <class T>
void test_many() {
  SplitMix random{31};
  for (std::size_t summands = 3; summands <= most_summands; ++summands) {
    for (int turn = 0; turn < 6; ++turn) {
      const std::size_t n = 2 * szp::unit_elements(type_of<T>) + 97 * summands;
      const std::string what = std::to_string(summands) + " at once";
      Quanta total(n);
      std::vector<Payload> payloads;
      Mode mode = Mode::fast;
      for (std::size_t k = 0; k < summands; ++k) {
        const Quanta q = make<T>(contents[random.next() % std::size(contents)], n, k + 1);
        const Mode own = random.next() % 6 == 0 ? Mode::dense : Mode::fast;
        if (own == Mode::dense) mode = own;
        total = total + q;
        payloads.push_back(encode<T>(q, own));
      }
      Payload one_by_one = payloads[0];
      for (std::size_t k = 1; k < summands; ++k) {
        one_by_one = sum_of<T>(one_by_one, payloads[k], n, what);
      }
      CHECK(canonical<T>(one_by_one, total, mode), "%s", what.c_str());
      for (Isa isa : all_isas) {
        if (!mpress::set_host_isa(isa)) continue;
        std::swap(payloads[0], payloads[random.next() % summands]);
        Payload sum;
        CHECK(add<T>(payloads, n, sum) == Status::ok && sum == one_by_one, "%s, %s", what.c_str(),
              isa_name(isa));
      }
    }
  }
}

// What matters is the sum: two that leave the limit together do not, where others bring it back.
template <class T>
void test_many_at_the_limit() {
  const std::size_t n = szp::unit_elements(type_of<T>) + 7;
  const auto eighth = static_cast<std::int64_t>(szp::Traits<T>::sum_limit) / 8;
  const Payload up = encode<T>(Quanta(n, eighth)), down = encode<T>(Quanta(n, -eighth));
  Payload most;
  CHECK(add<T>(std::vector<Payload>(5, up), n, most) == Status::ok, "five eighths");
  Payload out;
  CHECK(add<T>(most, most, n, out) == Status::inexact, "ten eighths");
  for (Isa isa : all_isas) {
    if (!mpress::set_host_isa(isa)) continue;
    CHECK(add<T>({most, most, down, down, down}, n, out) == Status::ok, "seven eighths");
    CHECK(holds<T>(out, Quanta(n, 7 * eighth)), "seven eighths, %s", isa_name(isa));
    const std::vector<Payload> eight(most_summands, most);
    CHECK(add<T>(eight, n, out) == Status::inexact, "far beyond the limit");
  }
}

// One that is wrong spoils them all, and of two the first is told of.
template <class T>
void test_one_of_many() {
  const std::size_t n = szp::unit_elements(type_of<T>) + 300;
  const std::vector<Payload> good(5, encode<T>(make<T>("noise", n, 7)));
  const Payload mismatched = encode(values<T>(make<T>("noise", n, 2)), Mode::fast, 2e-3);
  Payload out;
  for (std::size_t k = 0; k < good.size(); ++k) {
    std::vector<Payload> some = good;
    some[k] = mismatched;
    CHECK(add<T>(some, n, out) == Status::mismatched, "summand %zu of another step", k);
    some[k] = encode(values<T>(make<T>("noise", n, 2)), Mode::fast, 0.0);
    CHECK(add<T>(some, n, out) == Status::inexact, "summand %zu raw", k);
    some[k] = good[k];
    some[k][40] ^= 1;
    CHECK(add<T>(some, n, out) == Status::corrupt, "summand %zu damaged", k);
    some[(k + 1) % good.size()].resize(16);
    const bool is_cut_first = (k + 1) % good.size() < k;
    CHECK(add<T>(some, n, out) == (is_cut_first ? Status::truncated : Status::corrupt),
          "summands %zu and the next", k);
  }
}

// Elements count as what the encoder makes of them, and the sum's elements as what decoding gives.
template <class T>
void test_elements() {
  SplitMix random{77};
  for (int turn = 0; turn < 60; ++turn) {
    const std::size_t n = turn % 3 == 0 ? 1 + turn : 2 * szp::unit_elements(type_of<T>) + 5 * turn;
    const std::size_t summands = 2 + random.next() % (most_summands - 1);
    const Mode mode = random.next() % 3 == 0 ? Mode::dense : Mode::fast;
    std::vector<Payload> payloads;
    std::vector<std::vector<T>> elements;
    for (std::size_t k = 0; k < summands; ++k) {
      const Quanta q = make<T>(contents[random.next() % std::size(contents)], n, k + 1);
      std::vector<T> x = values<T>(q);
      const auto off = static_cast<T>(static_cast<double>(random.next() % 100) / 250);
      for (T& value : x) value += off * step_of<T>();
      payloads.push_back(encode(x, mode));
      elements.push_back(std::move(x));
    }
    Payload expected;
    const Status status = add<T>(payloads, n, expected);
    std::vector<T> decoded(n + 1, T(7)), result(n);
    for (Isa isa : all_isas) {
      if (!mpress::set_host_isa(isa)) continue;
      std::vector<Summand> given;
      for (std::size_t k = 0; k < summands; ++k) {
        const bool is_raw = random.next() % 2 == 0;
        if (is_raw) given.push_back({elements[k].data(), 0, true});
        if (!is_raw) given.push_back({payloads[k].data(), payloads[k].size()});
      }
      Payload sum(szp::max_bytes(type_of<T>, n));
      std::size_t bytes = 1;
      const Status found =
          szp::add(type_of<T>, given, n, sum.data(), bytes, {bound, mode}, decoded.data());
      sum.resize(bytes);
      if (status != Status::ok) continue;  // a payload kept as it is may be one of quanta after all
      CHECK(found == Status::ok && sum == expected, "turn %d, %s: %s", turn, isa_name(isa),
            status_text(found));
      szp::decode(type_of<T>, sum.data(), sum.size(), result.data(), n);
      CHECK(std::memcmp(result.data(), decoded.data(), n * sizeof(T)) == 0, "turn %d, %s", turn,
            isa_name(isa));
      std::fill_n(decoded.data(), n, T(7));
      CHECK(szp::add(type_of<T>, given, n, nullptr, bytes, {bound, mode}, decoded.data()) ==
                Status::ok,
            "turn %d, %s: without a payload", turn, isa_name(isa));
      CHECK(std::memcmp(result.data(), decoded.data(), n * sizeof(T)) == 0 && bytes == 0,
            "turn %d, %s: without a payload", turn, isa_name(isa));
      CHECK(decoded[n] == T(7), "beyond the elements");
    }
  }
}

// What the encoder keeps as it is, is no quantum.
template <class T>
void test_exceptions() {
  const std::size_t n = szp::unit_elements(type_of<T>);
  const Payload other = encode<T>(make<T>("noise", n, 7));
  const T far = szp::Traits<T>::max_quantum * step_of<T>() * 3;
  for (const T odd : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(), far, -far}) {
    for (Isa isa : all_isas) {
      if (!mpress::set_host_isa(isa)) continue;
      std::vector<T> x = values<T>(make<T>("smooth", n, 3));
      x[n / 2] = odd;
      const Summand given[] = {{other.data(), other.size()}, {x.data(), 0, true}};
      Payload sum(szp::max_bytes(type_of<T>, n));
      std::size_t bytes = 1;
      const auto add_to = [&](double abs_bound) {
        return szp::add(type_of<T>, given, n, sum.data(), bytes, {abs_bound});
      };
      CHECK(add_to(bound) == Status::inexact && bytes == 0, "%g, %s", double(odd), isa_name(isa));
      x[n / 2] = 0;
      CHECK(add_to(bound) == Status::ok, "without it, %s", isa_name(isa));
      CHECK(add_to(2 * bound) == Status::mismatched, "of another step");
      CHECK(add_to(0) == Status::inexact, "without a step");
    }
  }
}

template <class T>
void test_type() {
  test_elements<T>();
  test_exceptions<T>();
  test_many<T>();
  test_many_at_the_limit<T>();
  test_one_of_many<T>();
}

}  // namespace

int main() {
  test_type<float>();
  test_type<double>();
  if (failures == 0) std::printf("szp sums of many: ok\n");
  return failures == 0 ? 0 : 1;
}
