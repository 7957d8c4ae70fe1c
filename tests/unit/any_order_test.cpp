// Reductions whose result does not depend on the order: random permutations, sums that are known
// exactly, and what is special.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "codec/any_order.hpp"
#include "codec/codec.hpp"

namespace {

using namespace mpress;
using codec::Combine;

__extension__ typedef __float128 Wide;  // 113 bits

template <class T>
constexpr ElementType type_of = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;
template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Rows are what members bring.
template <class T>
using Rows = std::vector<std::vector<T>>;

template <class T>
std::vector<T> combined(Combine how, const Rows<T>& rows, double grid = 0) {
  std::vector<const void*> inputs;
  for (const std::vector<T>& row : rows) inputs.push_back(row.data());
  std::vector<T> out(rows.front().size());
  codec::combine_in_any_order(how, type_of<T>, inputs, out.data(), out.size(), grid);
  return out;
}

/// Of one element that each member brings.
template <class T>
T of(Combine how, const std::vector<T>& values) {
  Rows<T> rows;
  for (const T value : values) rows.push_back({value});
  return combined(how, rows).front();
}

template <class T>
T drawn(std::mt19937_64& random, int kind) {
  const double unit = std::uniform_real_distribution(-1.0, 1.0)(random);
  const int any = static_cast<int>(random() % 1000);
  switch (kind) {
    case 0: return static_cast<T>(unit);
    case 1: return static_cast<T>(std::ldexp(unit, any % 60 - 30));
    case 2: {  // any finite bits, and others
      T x;
      const std::uint64_t bits = random();
      std::memcpy(&x, &bits, sizeof x);
      return x;
    }
    case 3: return static_cast<T>(unit) * std::numeric_limits<T>::min() * 4;  // denormal, mostly
    case 4: return static_cast<T>(unit) * std::numeric_limits<T>::max();
    default:
      return any < 5     ? nan<T>
             : any < 10  ? infinity<T>
             : any < 15  ? -infinity<T>
             : any < 400 ? T(0)
             : any < 600 ? -T(0)
                         : static_cast<T>(unit);
  }
}

template <class T>
void permutations() {
  std::mt19937_64 random(7);
  for (const std::size_t members : {1, 2, 3, 4, 5, 9, 33, 100}) {
    for (int kind = 0; kind < 6; ++kind) {
      Rows<T> rows(members, std::vector<T>(700));
      for (auto& row : rows) std::ranges::generate(row, [&] { return drawn<T>(random, kind); });
      for (const Combine how : {Combine::sum, Combine::min, Combine::max}) {
        for (const double grid : {0.0, 1e-3}) {
          if (grid > 0 && how != Combine::sum) continue;
          const std::vector<T> expected = combined(how, rows, grid);
          for (int i = 0; i < 5; ++i) {
            std::ranges::shuffle(rows, random);
            CHECK(same(combined(how, rows, grid), expected));
          }
        }
      }
    }
  }
}

/// The whole in vectors, and element by element as devices do it, are the same.
template <class T>
void one_by_one() {
  std::mt19937_64 random(8);
  Rows<T> rows(6, std::vector<T>(3000));
  for (int kind = 0; kind < 6; ++kind) {
    for (auto& row : rows) std::ranges::generate(row, [&] { return drawn<T>(random, kind); });
    const std::vector<T> all = combined(Combine::sum, rows);
    const int room = codec::any_order::room_for(rows.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const T one = codec::any_order::sum<T>(static_cast<unsigned>(rows.size()), room,
                                             [&](unsigned row) { return rows[row][i]; });
      CHECK(std::memcmp(&one, &all[i], sizeof one) == 0);
    }
  }
}

/// Against sums that 113 bits hold.
template <class T>
void accuracy() {
  std::mt19937_64 random(9);
  std::size_t off = 0, sums = 0;
  for (const std::size_t members : {2, 7, 100, 1000}) {
    for (int kind = 0; kind < 2; ++kind) {
      Rows<T> rows(members, std::vector<T>(500));
      for (auto& row : rows) {
        for (T& x : row) x = std::ldexp(std::round(drawn<T>(random, kind) * 0x1p20f), -20);
      }
      const std::vector<T> got = combined(Combine::sum, rows);
      for (std::size_t i = 0; i < got.size(); ++i, ++sums) {
        Wide exact = 0;
        for (const auto& row : rows) exact += static_cast<Wide>(row[i]);
        const T expected = static_cast<T>(exact);
        off += got[i] != expected;
        CHECK(std::nextafter(got[i], expected) == expected || got[i] == expected);
      }
    }
  }
  CHECK(off * 1000 < sums);
}

template <class T>
void cancelling() {
  constexpr T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::denorm_min();
  CHECK(of<T>(Combine::sum, {most, 1, -most}) == 0);  // beyond the folds
  CHECK(of<T>(Combine::sum, {T(0x1p90), 1, -T(0x1p90)}) == 1);
  if (sizeof(T) == 8) {
    CHECK(of<T>(Combine::sum, {T(0x1p90), T(0x1p-20), -T(0x1p90)}) == T(0x1p-20));
  }
  CHECK(of<T>(Combine::sum, {most, most, -most}) == most);  // nothing overflows on the way
  CHECK(of<T>(Combine::sum, {most, most}) == infinity<T>);
  CHECK(of<T>(Combine::sum, {-most, -most}) == -infinity<T>);
  CHECK(of<T>(Combine::sum, {least, least, least}) == 3 * least);
  CHECK(of<T>(Combine::sum, {-least, least * 2}) == least);
  const T normal = std::numeric_limits<T>::min();
  CHECK(of<T>(Combine::sum, {normal, -least}) == normal - least);
  CHECK(!std::signbit(of<T>(Combine::sum, {-T(0), -T(0)})));
  CHECK(!std::signbit(of<T>(Combine::sum, {T(-5), T(5)})));
}

template <class T>
bool is_the_nan(T x) {
  return codec::any_order::bits_of(x) == codec::any_order::nan_bits<T>;
}

template <class T>
void special() {
  const T other = -std::numeric_limits<T>::signaling_NaN();
  CHECK(is_the_nan(of<T>(Combine::sum, {infinity<T>, 1, -infinity<T>})));
  CHECK(is_the_nan(of<T>(Combine::sum, {1, other, infinity<T>})));
  CHECK(of<T>(Combine::sum, {1, infinity<T>, infinity<T>}) == infinity<T>);
  CHECK(of<T>(Combine::sum, {-infinity<T>, 1, -1}) == -infinity<T>);
  for (const Combine how : {Combine::min, Combine::max}) {
    CHECK(is_the_nan(of<T>(how, {other})));
    CHECK(is_the_nan(of<T>(how, {1, other, 2})));
    CHECK(std::signbit(of<T>(how, {T(0), -T(0)})) == (how == Combine::min));
    CHECK(std::signbit(of<T>(how, {-T(0), T(0)})) == (how == Combine::min));
  }
  CHECK(of<T>(Combine::min, {3, -infinity<T>, 2}) == -infinity<T>);
  CHECK(of<T>(Combine::max, {3, 7, 2}) == 7);
}

/// On a grid each element counts as what it decodes to, encoded or not; and sums are those that
/// payloads have.
template <class T>
void on_grid() {
  constexpr double bound = 1e-3;
  Spec spec;
  std::string error;
  CHECK(parse_spec("szp:abs=1e-3", spec, error));
  std::mt19937_64 random(10);
  constexpr std::size_t count = 9000;
  Rows<T> rows(5, std::vector<T>(count)), decoded(5, std::vector<T>(count));
  std::vector<std::vector<std::byte>> payloads;
  std::vector<codec::Summand> summands;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    for (T& x : rows[k]) x = drawn<T>(random, 0) * (k == 2 ? T(2) : T(0.5));
    payloads.emplace_back(codec::max_payload_bytes(spec, type_of<T>, count));
    const std::size_t bytes =
        codec::encode(spec, type_of<T>, rows[k].data(), count, payloads[k].data());
    CHECK(codec::decode(spec, type_of<T>, payloads[k].data(), bytes, decoded[k].data(), count) ==
          codec::Status::ok);
    summands.push_back({payloads[k].data(), bytes});
  }
  std::vector<std::byte> sum(codec::max_payload_bytes(spec, type_of<T>, count));
  std::size_t bytes = 0;
  const codec::Status status = codec::szp::add(type_of<T>, summands, count, sum.data(), bytes);
  CHECK(status == codec::Status::ok);
  std::vector<T> expected(count);
  CHECK(codec::decode(spec, type_of<T>, sum.data(), bytes, expected.data(), count) ==
        codec::Status::ok);
  CHECK(same(combined(Combine::sum, rows, bound), expected));
  CHECK(same(combined(Combine::sum, decoded, bound), expected));
  // Quanta as large as there are.
  const T step = [&] {
    codec::szp::Quantizer<T> z{};
    CHECK(codec::szp::make_quantizer(bound, z));
    return z.step;
  }();
  const T far = codec::szp::Traits<T>::max_quantum;
  Rows<T> edge(2);
  for (int i = -3; i < 4; ++i) {
    for (const T sign : {T(1), T(-1)}) {
      edge[0].push_back(sign * (far + static_cast<T>(i)) * step);
      edge[1].push_back(T(0.1));
    }
  }
  Rows<T> after = edge;
  std::vector<std::byte> payload(codec::max_payload_bytes(spec, type_of<T>, edge[0].size()));
  const std::size_t size =
      codec::encode(spec, type_of<T>, edge[0].data(), edge[0].size(), payload.data());
  CHECK(codec::decode(spec, type_of<T>, payload.data(), size, after[0].data(), after[0].size()) ==
        codec::Status::ok);
  CHECK(same(combined(Combine::sum, edge, bound), combined(Combine::sum, after, bound)));
}

/// A bound and a slack anywhere among the type's magnitudes, half of them where those end, and at
/// times a reach.
template <class T>
codec::Grid drawn_grid(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const double unit = std::uniform_real_distribution(0.0, 1.0)(random);
  int exponent = Limits::min_exponent + below(Limits::max_exponent - Limits::min_exponent);
  switch (below(4)) {
    case 0: exponent = Limits::min_exponent + below(6) - 3; break;
    case 1: exponent = Limits::max_exponent - below(16) - 1; break;
    default: break;
  }
  codec::Grid grid(std::ldexp(1 + unit, exponent),
                   below(2) == 0 ? 0 : std::ldexp(unit, exponent - below(24)));
  switch (below(4)) {
    case 0: grid.reach = std::floor(std::exp2(23 * unit)); break;
    case 1: grid.reach = 10 * unit; break;
    case 2: grid.reach = 2695 + below(10); break;
    default: break;
  }
  return grid;
}

/// One next to a quantum where something changes, or anywhere, or the greatest there are.
template <class T>
T drawn_beside(const codec::szp::Quantizer<T>& z, std::mt19937_64& random) {
  static constexpr double edges[] = {0,      2700,   0x1p22, 0x1p23,   0x1.8p23, 0x1p24, 0x1.8p24,
                                     0x1p26, 0x1p28, 0x1p31, 0x1.8p31, 0x1p32,   0x1p51, 0x1.8p52};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const double unit = std::uniform_real_distribution(-0.5, 0.5)(random);
  const int kind = below(8);
  T x = std::numeric_limits<T>::max();
  if (kind > 0) {
    double quantum = std::floor(std::exp2(30 * (unit + 0.5)));
    if (kind > 3) quantum = edges[below(std::size(edges))] + below(9) - 4;
    if (kind == 3) quantum = static_cast<double>(z.most) + below(5) - 2;
    x = static_cast<T>((quantum + (below(3) == 0 ? 0.5 : unit)) * static_cast<double>(z.step));
  }
  for (int i = below(4); i > 0; --i) x = std::nextafter(x, below(2) == 0 ? T(0) : infinity<T>);
  return below(2) == 0 ? x : -x;
}

/// What kernels round at once is what all others find.
template <class T>
void quick_quanta() {
  constexpr std::int32_t most = (1 << 26) - 1;
  std::mt19937_64 random(7);
  long small = 0, near = 0;
  for (int i = 0; i < 20'000; ++i) {
    codec::szp::Quantizer<T> z{};
    if (!codec::szp::make_quantizer(drawn_grid<T>(random), z)) continue;
    const codec::any_order::QuickReach quick = codec::any_order::quick_reach(z, most);
    CHECK(quick.small <= quick.near && quick.near <= most);
    for (int k = 0; k < 100; ++k) {
      T x = drawn_beside(z, random);
      if (k < 4)
        x = std::array{nan<T>, -nan<T>, infinity<T>, -infinity<T>}[static_cast<unsigned>(k)];
      std::uint32_t strange = 0;
      const std::int32_t q = codec::any_order::next_quantum(z, x, strange);
      const bool is_small = strange == 0 && q >= -quick.small && q <= quick.small;
      const bool is_near = sizeof(T) == 4 && q >= -quick.near && q <= quick.near &&
                           codec::any_order::is_near(z, x, q);
      small += is_small;
      near += is_near;
      if (!is_small && !is_near) continue;
      T quantum = 0;
      CHECK(codec::any_order::quantum_of(z, x, quantum) && quantum == static_cast<T>(q));
    }
  }
  CHECK(small > 100'000 && (sizeof(T) == 8 || near > small));
}

template <class T>
void all_of() {
  quick_quanta<T>();
  permutations<T>();
  one_by_one<T>();
  accuracy<T>();
  cancelling<T>();
  special<T>();
  on_grid<T>();
}

}  // namespace

int main() {
  all_of<float>();
  all_of<double>();
  return check::failures != 0;
}
