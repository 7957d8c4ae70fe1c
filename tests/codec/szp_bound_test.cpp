// szp: sums of many summands stay within the bound that is told of them, whatever their size, their
// number and what they are: added in quanta, or as elements where that is not possible.
#include <limits>
#include <set>
#include <span>

#include "codec/any_order.hpp"
#include "codec/combine.hpp"
#include "codec/sum_grid.hpp"
#include "szp_sums.hpp"

namespace {

// A sum in double precision, and what its roundings have lost.
struct Exact {
  double high = 0, low = 0;
  void add(double x) {
    const double sum = high + x;
    const double rest = sum - high;
    low += (high - (sum - rest)) + (x - rest);
    high = sum;
  }
  double off_by(double got) const { return std::fabs((got - high) - low); }
};

enum class Kind { halves, greatest, random, cancelling, count_ };

// What one of `summands` brings, of magnitudes up to `most`. Halves lie as far from any multiple of
// the step as they can, all on the same side.
template <class T>
std::vector<T> brought(Kind kind, double most, double step, int summand, std::size_t n,
                       SplitMix& random) {
  std::vector<T> x(n);
  const auto greatest = static_cast<T>(most);
  for (std::size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random.next() >> 11) * 0x1p-52 - 1;
    double value = unit * most;
    if (kind == Kind::halves) value = (std::floor(value / step) + 0.4999) * step;
    if (kind == Kind::greatest) {
      value = most * (1 - static_cast<double>(i % 8) * std::numeric_limits<T>::epsilon());
    }
    if (kind == Kind::cancelling) value = (summand % 2 == 0 ? 0.7 : -0.7) * most + unit * step;
    x[i] = static_cast<T>(value);
    if (std::fabs(static_cast<double>(x[i])) > most) x[i] = x[i] > 0 ? greatest : -greatest;
  }
  return x;
}

// As reductions add: a few at a time; the first are elements, which nobody has encoded.
template <class T>
std::vector<T> sum_of_quanta(std::span<const std::vector<T>> summands,
                             const mpress::codec::Grid& each) {
  const std::size_t n = summands[0].size();
  std::vector<Payload> payloads;
  for (const std::vector<T>& x : summands) {
    Payload payload(szp::max_bytes(type_of<T>, n));
    payload.resize(szp::encode(type_of<T>, x.data(), n, each, Mode::fast, payload.data()));
    payloads.push_back(std::move(payload));
  }
  Payload sum, next(szp::max_bytes(type_of<T>, n));
  std::vector<Summand> some{{summands[0].data(), 0, true}};
  for (std::size_t i = 1; i < payloads.size(); ++i) {
    some.push_back({payloads[i].data(), payloads[i].size()});
    if (some.size() < most_summands && i + 1 < payloads.size()) continue;
    std::size_t bytes = 0;
    const Status status = szp::add(type_of<T>, some, n, next.data(), bytes, {each});
    CHECK(status == Status::ok, "an element has no quantum");
    if (status != Status::ok) return {};
    sum.assign(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(bytes));
    some.assign(1, {sum.data(), sum.size()});
  }
  std::vector<T> decoded(n);
  const Status status = szp::decode(type_of<T>, sum.data(), sum.size(), decoded.data(), n);
  CHECK(status == Status::ok, "a sum decodes");
  return decoded;
}

template <class T>
std::vector<T> sum_of_elements(std::span<const std::vector<T>> summands,
                               const mpress::codec::Grid& each) {
  std::vector<const void*> inputs;
  for (const std::vector<T>& x : summands) inputs.push_back(x.data());
  std::vector<T> sum(summands[0].size());
  mpress::codec::combine_in_any_order(mpress::codec::Combine::sum, type_of<T>, inputs, sum.data(),
                                      sum.size(), each);
  return sum;
}

// The largest error over the bound that was told.
template <class T>
double check(Kind kind, double bound, int number, double most) {
  const auto each = mpress::codec::summand_grid(type_of<T>, bound, number, most);
  if (!each || !mpress::codec::resolvable(type_of<T>, each->bound)) return 0;
  const double told = mpress::codec::bound_of_sum(type_of<T>, *each, number, most);
  CHECK(told <= bound && told >= number * each->bound, "%g is told, %g was asked for", told, bound);
  const std::size_t n = szp::unit_elements(type_of<T>);
  SplitMix random{static_cast<std::uint64_t>(number) * 977 + static_cast<std::uint64_t>(kind)};
  szp::Quantizer<T> z{};
  szp::make_quantizer(*each, z);
  std::vector<std::vector<T>> summands;
  std::vector<Exact> exact(n);
  for (int summand = 0; summand < number; ++summand) {
    summands.push_back(brought<T>(kind, most, static_cast<double>(z.step), summand, n, random));
    for (std::size_t i = 0; i < n; ++i) exact[i].add(static_cast<double>(summands.back()[i]));
  }
  double largest = 0;
  for (const bool in_quanta : {true, false}) {
    const std::vector<T> sum =
        in_quanta ? sum_of_quanta<T>(summands, *each) : sum_of_elements<T>(summands, *each);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      largest = std::max(largest, exact[i].off_by(static_cast<double>(sum[i])));
    }
  }
  CHECK(largest <= told, "f%d, kind %d, %d summands up to %g, bound %g: off by %.17g, told %.17g",
        static_cast<int>(8 * sizeof(T)), static_cast<int>(kind), number, most, bound, largest,
        told);
  return largest / told;
}

// Bounds from the tightest that sums can keep, where rounding takes nearly all of it, on.
template <class T>
void test_type() {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  int kept = 0;
  double closest = 0;
  for (const int number : {2, 3, 8, 19, 150}) {
    for (const double most : {1.0, 1 - u, 1.1, 3e-20, 5e17}) {
      const double least = number * (sizeof(T) == 4 ? 5.5 : number + 5.0) * u * most;
      for (const double times : {1.001, 1.1, 1.5, 2.0, 3.0, 10.0, 1e3}) {
        for (int kind = 0; kind < static_cast<int>(Kind::count_); ++kind) {
          const double ratio = check<T>(static_cast<Kind>(kind), least * times, number, most);
          kept += ratio > 0;
          closest = std::max(closest, ratio);
        }
      }
    }
  }
  CHECK(kept > 200, "only %d of the bounds can be kept", kept);
  CHECK(closest > 0.95, "no error comes close to its bound: %g", closest);
  std::printf("f%d: %d kept, closest %g\n", static_cast<int>(8 * sizeof(T)), kept, closest);
}

// Sums that nobody has looked at: up to covered() every element has a quantum, on the grid that is
// theirs where the range is known, too; beyond it none has.
template <class T>
void test_blind() {
  for (const int number : {2, 3, 16, 100}) {
    for (const double bound : {1e-3, 0.7, 1e-9, 3e5}) {
      const double most = mpress::codec::covered(type_of<T>, bound, number);
      const auto blind = mpress::codec::blind_grid(type_of<T>, bound, number);
      const auto known = mpress::codec::summand_grid(type_of<T>, bound, number, most);
      CHECK(blind && known && blind->bound == known->bound && blind->slack == known->slack,
            "%d summands, bound %g", number, bound);
      if (!blind || !known) return;
      CHECK(mpress::codec::bound_of_sum(type_of<T>, *known, number, most) <= bound, "%g", bound);
      szp::Quantizer<T> all{}, some{};
      szp::make_quantizer(*known, all);
      szp::make_quantizer(*blind, some);
      SplitMix random{static_cast<std::uint64_t>(number)};
      const auto step = static_cast<double>(all.step);
      for (int i = 0; i < 200'000; ++i) {
        const double within = (2 * static_cast<double>(random.next() >> 11) * 0x1p-53 - 1) * most;
        const double near = most + (i % 2000 - 1000) * 0.01 * step;
        for (const double x : {within, near, -near, 3 * within}) {
          const T element = static_cast<T>(x);
          T q = 0, same = 0;
          const bool is_covered = std::fabs(static_cast<double>(element)) <= most;
          const bool has = mpress::codec::any_order::quantum_of(all, element, q);
          const bool has_blindly = mpress::codec::any_order::quantum_of(some, element, same);
          CHECK(has || !is_covered, "%.17g of %.17g", x, most);
          CHECK(!has_blindly || (is_covered && same == q), "%.17g of %.17g", x, most);
          CHECK(has_blindly || std::fabs(x) > most - 3 * step, "%.17g of %.17g", x, most);
        }
      }
    }
  }
  CHECK(
      mpress::codec::covered(type_of<T>, 0, 4) == 0 && !mpress::codec::blind_grid(type_of<T>, 0, 4),
      "no bound");
}

/// What a relative bound and a range are taken for: a little less and a little more, few of them.
void test_steps() {
  SplitMix random{9};
  std::set<double> bounds, magnitudes;
  for (int i = 0; i < 20'000; ++i) {
    const auto uniform = [&] { return static_cast<double>(random.next() >> 11) * 0x1p-53; };
    const double scale = std::ldexp(1, static_cast<int>(random.next() % 1800) - 900);
    const mpress::codec::Grounds exact{scale * (1 + uniform()), scale * (1 + uniform())};
    const mpress::codec::Grounds found = mpress::codec::coarse(exact);
    CHECK(found.bound <= exact.bound && found.bound > exact.bound * (1 - 0x1p-5), "%a",
          exact.bound);
    CHECK(found.most >= exact.most && found.most < exact.most * 1.25, "%a", exact.most);
    CHECK(mpress::codec::coarse(found) == found, "%a, %a", found.bound, found.most);
    bounds.insert(found.bound / scale);
    magnitudes.insert(found.most / scale);
  }
  CHECK(bounds.size() == 32 && magnitudes.size() == 4, "%zu, %zu", bounds.size(),
        magnitudes.size());
  const mpress::codec::Grounds none{0, 0};
  CHECK(mpress::codec::coarse(none) == none, "of nothing");
  CHECK(mpress::codec::coarse({1, std::numeric_limits<double>::max()}).most == INFINITY,
        "the greatest");
}

}  // namespace

int main() {
  test_type<float>();
  test_type<double>();
  test_blind<float>();
  test_blind<double>();
  test_steps();
  const mpress::ElementType f32 = mpress::ElementType::f32;
  CHECK(!mpress::codec::summand_grid(f32, 1e-9, 4, 1.0), "rounding alone is more");
  CHECK(!mpress::codec::summand_grid(f32, 0, 4, 1.0), "no bound");
  CHECK(!mpress::codec::summand_grid(f32, 1e-3, 4, INFINITY), "no range");
  CHECK(mpress::codec::summand_grid(f32, 1e-3, 4, 0.0).has_value(), "zeros");
  if (failures == 0) std::printf("bounds of szp's sums: ok\n");
  return failures == 0 ? 0 : 1;
}
