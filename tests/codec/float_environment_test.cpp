// The program's floating-point environment is its own: whatever it rounds to, flushes, traps or has
// raised, codecs and policy compute the same, trap nothing and leave all of it as it was. Only what
// MPI would have added up is added up with the modes of the program.
#include "codec/float_environment.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "codec/codec.hpp"
#include "codec/combine.hpp"
#include "codec/error.hpp"
#include "codec/isa.hpp"
#include "codec/sum_grid.hpp"
#include "codec/szp/format.hpp"
#include "config/config.hpp"
#include "floats.hpp"
#include "policy/policy.hpp"
#include "policy/profile.hpp"
#include "support.hpp"

using namespace mpress;

namespace {

/// Everything that a computation found, as bytes.
class Findings {
 public:
  void add(const void* data, std::size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  Findings& operator<<(const T& value) {
    add(&value, sizeof value);
    return *this;
  }
  template <class T>
  Findings& operator<<(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
    return *this;
  }
  Findings& operator<<(const std::string& text) {
    add(text.data(), text.size());
    return *this;
  }
  bool operator==(const Findings&) const = default;

 private:
  std::string bytes_;
};

/// `act` finds the same in all environments, and changes none.
void expect_same(const char* what, const std::function<Findings()>& act) {
  const Findings usual = floats::in(floats::usual, act).first;
  for (const floats::State state : floats::strange()) {
    const auto [found, after] = floats::in(state, act);
    CHECK(found == usual, "%s in %x", what, state);
    CHECK(after == state, "%s leaves %x for %x", what, after, state);
  }
}

Spec spec_of(const char* text) {
  Spec spec;
  std::string error;
  CHECK(parse_spec(text, spec, error), "%s", error.c_str());
  return spec;
}

template <class T>
void codecs_compute_alike() {
  constexpr std::size_t count = 10000;
  constexpr ElementType type = type_of<T>;
  const std::vector<T> x = floats::odd_field<T>(count, 1), y = floats::odd_field<T>(count, 2);
  for (const char* text : {"mpc", "zfp:8", "zfp:20", "szp:abs=1e-3", "szp:rel=1e-4",
                           "szp:abs=1e-3,mode=dense", "szp:abs=1e-41"}) {
    const Spec spec = spec_of(text);
    std::vector<unsigned char> payload(codec::max_payload_bytes(spec, type, count));
    std::vector<T> decoded(count), sum(count);
    expect_same(text, [&] {
      Findings found;
      const std::size_t bytes = codec::encode(spec, type, x.data(), count, payload.data());
      found.add(payload.data(), bytes);
      found << codec::decode(spec, type, payload.data(), bytes, decoded.data(), count) << decoded;
      const bool adds = spec.lossy();
      for (const codec::Combine how : {codec::Combine::sum, codec::Combine::min}) {
        sum = y;
        if (!adds) break;
        found << codec::decode(spec, type, payload.data(), bytes, sum.data(), count, how) << sum;
      }
      found << codec::largest_error(type, x.data(), decoded.data(), count);
      return found;
    });
  }
}

template <class T>
void sums_of_codecs_are_alike() {
  constexpr std::size_t count = 10000;
  constexpr ElementType type = type_of<T>;
  std::vector<std::vector<T>> x;
  for (int owner = 0; owner < 4; ++owner) x.push_back(floats::odd_field<T>(count, owner));
  std::vector<std::vector<T>> plain(4, std::vector<T>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) plain[k][i] = static_cast<T>(i % 1023 + 100 * k) / 1000;
  }
  std::vector<unsigned char> payload(codec::szp::max_bytes(type, count)), total(payload.size());
  std::vector<T> decoded(count);
  expect_same("szp::add", [&] {
    Findings found;
    const codec::Grid grid(1e-3);
    const std::size_t bytes =
        codec::szp::encode(type, plain[0].data(), count, grid, Mode::fast, payload.data());
    const codec::Summand summands[] = {
        {payload.data(), bytes}, {plain[1].data(), 0, true}, {payload.data(), bytes}};
    std::size_t total_bytes;
    found << codec::szp::add(type, summands, count, total.data(), total_bytes, {grid},
                             decoded.data());
    found.add(total.data(), total_bytes);
    return found << decoded;
  });
  for (const auto* inputs : {&x, &plain}) {
    const void* const views[] = {(*inputs)[0].data(), (*inputs)[1].data(), (*inputs)[2].data(),
                                 (*inputs)[3].data()};
    expect_same("in any order", [&] {
      Findings found;
      for (const codec::Combine how :
           {codec::Combine::sum, codec::Combine::min, codec::Combine::max}) {
        for (const double bound : {0.0, 1e-3}) {
          codec::combine_in_any_order(how, type, views, decoded.data(), count, bound);
          found << decoded;
        }
      }
      return found;
    });
  }
}

template <class T>
void ranges_and_grids_are_alike() {
  constexpr ElementType type = type_of<T>;
  const std::vector<T> x = floats::odd_field<T>(5000, 1), y = floats::odd_field<T>(5000, 2);
  expect_same("ranges and grids", [&] {
    Findings found;
    codec::Range range = codec::finite_range(type, x.data(), x.size());
    range.join(codec::finite_range(type, y.data(), y.size()));
    found << range.min << range.max << range.width();
    for (const double bound : {1e-3, 1.0 / 3, 1e-20, 3e-310, 1e300}) {
      for (const int summands : {2, 3, 7, 150}) {
        const auto grid = codec::summand_grid(type, bound, summands, 0.7);
        if (grid) found << grid->bound << grid->slack;
        if (grid) found << codec::bound_of_sum(type, *grid, summands, 0.7);
        const auto blind = codec::blind_grid(type, bound, summands);
        if (blind) found << blind->bound << blind->reach << codec::reached(*blind);
        found << codec::covered(type, bound, summands);
      }
      const codec::Grounds coarse = codec::coarse({bound, 0.7});
      found << coarse.bound << coarse.most << codec::resolvable(type, bound);
      codec::szp::Quantizer<T> z{};
      found << codec::szp::quantizer_of(bound, z) << z.step << z.inverse << z.limit;
      Spec spec;
      spec.codec = Codec::szp;
      spec.bound = Bound::rel;
      spec.value = bound;
      const Spec resolved = codec::resolve(spec, type, x.data(), x.size());
      found << resolved.value << resolved.step;
    }
    return found;
  });
}

void texts_are_read_and_written_alike() {
  expect_same("texts", [] {
    Findings found;
    for (const char* text : {"szp:abs=0.1", "szp:rel=1e-3", "szp:abs=4.9e-324", "szp:abs=1e999",
                             "zfp:3.3", "zfp:2.2", "mpc:dim=3", "mpc:dim=3.5"}) {
      Spec spec;
      std::string error;
      found << parse_spec(text, spec, error) << error << spec.value << to_string(spec);
      found << validate_spec(spec, ElementType::f64, error) << error;
      found << zfp_block_bits(spec.value, ElementType::f32);
    }
    double rate = 0;
    for (const char* text : {"0.3Gbit", "1.1Mbit", "1e-400", "7"}) {
      found << parse_rate(text, rate) << rate;
    }
    policy::Profile profile;
    std::string error;
    found << policy::parse_profile(
        "mpress profile 1\n[codec mpc, host]\nencode = 1024:1.1e-05\ndecode = 1024:0.1\n", profile,
        error);
    found << error << profile.codecs[1][0].encode.points().front().seconds;
    return found;
  });
}

void policy_decides_alike() {
  using namespace policy;
  expect_same("policy", [] {
    Findings found;
    Costs costs = default_costs();
    Policy policy;
    policy.configure(false, costs);
    LinkModel& links = policy.links();
    links.learn_codecs({0, 1e-10, 1e-10, 1e-10});
    links.begin(Peer::other_host, 1.17e8, Confidence::medium);
    links.learn_linked(3.3e11, 250, "a test");
    found << policy.may_compress_host() << policy.may_compress_devices() << links.may_have_raw();
    found << links.has_raw({Place::device, Peer::linked}, 1 << 20);
    const auto ratios = std::make_shared<Ratios>();
    for (const Place place : {Place::host, Place::device}) {
      for (std::size_t bytes = 3000; bytes < 100 << 20; bytes *= 7) {
        const Subject subject{
            {place, Peer::other_host}, Codec::szp, ElementType::f32, bytes, ratios};
        for (int i = 0; i < 4; ++i) {
          found << policy.judge(subject) << policy.is_raw_by_costs(subject);
          policy.encoded(subject, bytes / 3, bytes / 7);
          policy.decoded(place, Codec::szp, bytes, bytes / 9);
          found << policy.judge_timing(subject, true, [] { return std::uint64_t{77777777}; });
          found << links.observe(Peer::other_host, bytes / 3, 9 * bytes,
                                 policy.codec_seconds(subject));
        }
      }
    }
    links.adopt(Peer::other_host, 1.3e8);
    found << policy.least_bytes(Peer::other_host, 65536) << links.rate(Peer::other_host);
    const Path paths[] = {{Place::host, Peer::other_host}, {Place::device, Peer::linked}};
    CollectiveCosts between;
    between.within = links.rounds(paths[1]);
    between.between = links.rounds(paths[0]);
    found << between.within.seconds_a_byte << between.between.seconds_a_byte;
    const int hosts[] = {0, 0, 1, 1, 2};
    MethodChoice choose;
    for (std::size_t bytes = 1000; bytes < 100 << 20; bytes *= 9) {
      const auto method = choose(schedule::Op::bcast, bytes, schedule::Hosts(hosts), between, 0.7);
      found << method.algorithm << method.segments << method.window;
    }
    return found;
  });
}

// MPI's arithmetic:

// Not inlined, so that no compiler moves it to where other modes are set.
template <class T>
[[gnu::noinline]] T added(codec::Combine how, T a, T b) {
  return how == codec::Combine::prod ? a * b : a + b;
}

template <class T>
void plain_sums_are_the_programs() {
  constexpr std::size_t count = 3000;
  constexpr ElementType type = type_of<T>;
  const std::vector<T> x = floats::odd_field<T>(count, 1), y = floats::odd_field<T>(count, 2);
  const void* const views[] = {x.data(), y.data()};
  for (const codec::Combine how : {codec::Combine::sum, codec::Combine::prod}) {
    for (const floats::State mode : floats::modes()) {
      const auto expected = floats::in<std::vector<T>>(mode, [&] {
        std::vector<T> sums;
        for (std::size_t i = 0; i < count; ++i) sums.push_back(added(how, x[i], y[i]));
        return sums;
      });
      const auto got = floats::in<Findings>(mode, [&] {
        Findings found;
        std::vector<T> sums(count);
        codec::combine_all(how, type, views, sums.data(), count);
        found << sums;
        sums = x;
        codec::combine_elements(how, type, sums.data(), y.data(), count);
        return found << sums;
      });
      // For a call of this thread, by another one, which has the usual modes.
      const auto modes = floats::in<FloatModes>(mode, [] { return FloatModes::of_thread(); });
      Findings twice;
      twice << expected.first << expected.first;
      CHECK(got.first == twice && got.second == mode, "in %x", mode);
      std::vector<T> sums(count);
      std::thread([&] {
        floats::set(floats::usual);
        codec::combine_all(how, type, views, sums.data(), count, false, modes.first);
        CHECK(floats::get() == floats::usual, "in %x", mode);
      }).join();
      Findings once, alike;
      once << expected.first;
      alike << sums;
      CHECK(once == alike, "in %x by another thread", mode);
    }
    for (const floats::State state : floats::strange()) {
      std::vector<T> sums(count);
      const auto done = floats::in<bool>(state, [&] {
        codec::combine_all(how, type, views, sums.data(), count);
        return true;
      });
      CHECK(done.second == state, "%x for %x", done.second, state);
    }
  }
}

void exceptions_pass() {
  for (const floats::State state : floats::strange()) {
    const auto done = floats::in<bool>(state, [] {
      try {
        compute([] { throw std::runtime_error("for example"); });
      } catch (const std::runtime_error&) {
        return true;
      }
      return false;
    });
    CHECK(done.first && done.second == state, "%x", state);
  }
}

}  // namespace

int main() {
  const Isa best = host_isa();
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (!set_host_isa(isa)) continue;
    codecs_compute_alike<float>();
    codecs_compute_alike<double>();
    sums_of_codecs_are_alike<float>();
    sums_of_codecs_are_alike<double>();
  }
  set_host_isa(best);
  ranges_and_grids_are_alike<float>();
  ranges_and_grids_are_alike<double>();
  texts_are_read_and_written_alike();
  policy_decides_alike();
  plain_sums_are_the_programs<float>();
  plain_sums_are_the_programs<double>();
  exceptions_pass();
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
