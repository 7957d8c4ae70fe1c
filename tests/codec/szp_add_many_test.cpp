// szp: many payloads are added at once as two by two, and partial sums beyond the limit do no harm.
#include "szp_sums.hpp"

namespace {

// Many at once are what they are one by one, in any order.
template <class T>
void test_many() {
  SplitMix random{31};
  for (std::size_t summands = 3; summands <= szp::most_summands; ++summands) {
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
    const std::vector<Payload> eight(szp::most_summands, most);
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

template <class T>
void test_type() {
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
