// Members that add up together in quanta of szp, or combine as it is, by kernels that wait for each
// other; results are compared with the host's combine_in_any_order() and combine_all(), bit for
// bit. All members are of this process, on one device, each with a queue of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"
#include "codec/any_order.hpp"
#include "codec/codec.hpp"
#include "codec/combine.hpp"
#include "codec/range.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint_sum.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "joint_members.hpp"
#include "queues.hpp"

namespace mpress::joint_sum_test {

using gpu::JointSum;
using gpu::Place;

namespace joint = gpu::joint_sum;

/// `greatest`: of one member, some next to the type's greatest; no other brings anything but 0.
enum class Data { smooth, noise, tiny, strange, wide, greatest };
constexpr Data all_data[] = {Data::smooth, Data::noise, Data::tiny, Data::strange, Data::wide};

struct Parts {
  std::vector<std::uint64_t> begins, counts;
};

struct Case {
  std::uint32_t readers = 0;
  bool in_place = false;
  std::size_t skew = 0;  ///< elements in front of input and result
  unsigned late = 0;     ///< a member that comes last, after the others have given up
  Data data = Data::smooth;
  bool as_they_are = false;
  codec::Combine how = codec::Combine::sum;
  double reach = 0;
  bool finds_range = false;
  int source = -1;  ///< of a broadcast
  double bound = 1e-3;
};

/// Members with joint memory, of the device or the host, for parts of so many units; the last has
/// room for one more.
class Members : public JointMembers {
 public:
  Members(Place place, unsigned number, std::uint32_t units, std::size_t most)
      : JointMembers(most), is_on_host_(place == Place::pinned) {
    for (unsigned i = 0; i < number; ++i) {
      units_.push_back(units + (i + 1 == number ? 1 : 0));
      const joint::Layout layout{number, units_[i], is_on_host_};
      add(place, layout.bytes(), layout.cleared_bytes(), sizeof(JointSum::Tally));
    }
  }

  std::uint32_t all() const { return (1u << number()) - 1; }

  template <class T>
  void sum(const Case& one, const Parts& cut) {
    const auto& [begins, counts] = cut;
    const std::size_t count = end_of(cut);
    const std::vector<std::vector<T>> inputs = bring<T>(one, count);
    call_ += laps_;  // of the last one
    const std::uint64_t longest = *std::ranges::max_element(counts);
    laps_ =
        joint::laps_of(static_cast<std::uint32_t>(joint::units_of(longest, sizeof(T))), units_[0]);
    std::vector<char> had_elements(number());
    std::vector<codec::Range> found(number());
    call_jointly(
        queues_, one.late, [&](unsigned i, bool again) { return give<T>(one, cut, i, again); },
        [&](unsigned i) {
          sent_ += tally(i).sent;
          received_ += tally(i).received;
          found[i].join(codec::range_of(tally(i).extent));
          if (load(tally(i).as_elements) != 0) had_elements[i] = 1;
          return load(tally(i).undone) != 0;
        });
    for (unsigned i = 0; i < number(); ++i) {
      codec::Range range;
      for (unsigned part = 0; part < number() && one.finds_range; ++part) {
        range.join(codec::finite_range(type_of<T>, inputs[i].data() + begins[part], counts[part]));
      }
      CHECK(found[i].any_finite == range.any_finite);
      CHECK(found[i].min == range.min && found[i].max == range.max);
    }
    const std::vector<T> expected = expect(one, inputs);
    if (one.readers == all() && !one.as_they_are) {
      const bool expected_any = one.reach > 0 && !are_quanta<T>(inputs, grid(one));
      for (const char had : had_elements) CHECK((had != 0) == expected_any);
    }
    check<T>(one, cut, expected);
  }

  std::uint64_t take_sent() {
    CHECK(again_ > 0 || sent_ == std::exchange(received_, 0));
    return std::exchange(sent_, 0);
  }

 private:
  static std::size_t end_of(const Parts& cut) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < cut.begins.size(); ++i) {
      end = std::max<std::size_t>(end, cut.begins[i] + cut.counts[i]);
    }
    return end;
  }

  /// What members have, and rubbish where results go.
  template <class T>
  std::vector<std::vector<T>> bring(const Case& one, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    CHECK(bytes <= most_);
    std::vector<std::vector<T>> inputs;
    const std::vector<std::byte> rubbish(bytes + 64, std::byte{0x5a});
    for (unsigned i = 0; i < number(); ++i) {
      inputs.push_back(make<T>(one.data, count, i));
      put(*queues_[i], out(i, one, sizeof(T)), rubbish.data(), bytes);
      put(*queues_[i], input(i, one, sizeof(T)), inputs[i].data(), bytes);
    }
    return inputs;
  }

  template <class T>
  static std::vector<T> expect(const Case& one, const std::vector<std::vector<T>>& inputs) {
    const std::size_t count = inputs[0].size();
    std::vector<T> expected(count);
    std::vector<const void*> views;
    for (const auto& input : inputs) views.push_back(input.data());
    if (one.source >= 0) {
      expected = inputs[static_cast<std::size_t>(one.source)];
    } else if (one.as_they_are) {
      codec::combine_all(one.how, type_of<T>, views, expected.data(), count);
    } else {
      codec::combine_in_any_order(codec::Combine::sum, type_of<T>, views, expected.data(), count,
                                  grid(one));
    }
    return expected;
  }

  template <class T>
  void check(const Case& one, const Parts& cut, const std::vector<T>& expected) {
    const auto& [begins, counts] = cut;
    const std::size_t count = expected.size();
    for (unsigned i = 0; i < number(); ++i) {
      const bool is_reader = (one.readers >> i & 1) != 0;
      if (one.readers != 0 && !is_reader) continue;
      // All parts, or its own alone in front.
      const std::vector<std::byte> got = bytes_of(*queues_[i], out(i, one, sizeof(T)),
                                                  (is_reader ? count : counts[i]) * sizeof(T));
      for (unsigned part = 0; part < number(); ++part) {
        if (!is_reader && part != i) continue;
        const std::byte* const found = got.data() + (is_reader ? begins[part] : 0) * sizeof(T);
        CHECK(std::memcmp(found, expected.data() + begins[part], counts[part] * sizeof(T)) == 0);
      }
    }
  }

  static codec::Grid grid(const Case& one) {
    codec::Grid found = one.bound;
    found.reach = one.reach;
    return found;
  }

  /// All elements and their sums?
  template <class T>
  static bool are_quanta(const std::vector<std::vector<T>>& inputs, const codec::Grid& grid) {
    codec::szp::Quantizer<T> z{};
    codec::szp::make_quantizer(grid, z);
    for (std::size_t i = 0; i < inputs[0].size(); ++i) {
      double sum = 0;
      for (const auto& input : inputs) {
        T quantum = 0;
        if (!codec::any_order::quantum_of(z, input[i], quantum)) return false;
        sum += static_cast<double>(quantum);
      }
      const auto limit = static_cast<double>(codec::szp::Traits<T>::sum_limit);
      if (!(sum >= -limit && sum < limit)) return false;
    }
    return true;
  }

  template <class T>
  std::vector<T> make(Data data, std::size_t count, unsigned member) {
    std::vector<T> x(count);
    const double* const noise = cut_of_noise(count);
    const double* const wave = cut_of_wave(count, member);
    for (std::size_t i = 0; i < count; ++i) {
      const double value = data == Data::smooth ? wave[i]
                           : data == Data::tiny ? 1e-6 * noise[i]
                           : data == Data::wide ? 4000 * wave[i] + noise[i]
                                                : noise[i];
      x[i] = static_cast<T>(value);
    }
    constexpr T most = std::numeric_limits<T>::max();
    if (data == Data::greatest) {
      for (std::size_t i = 0; i < count; ++i) {
        const double part = 1 - std::abs(noise[i]) * (i % 5 == 0 ? 1e-6 : 0.5);
        x[i] = member > 0 ? 0 : static_cast<T>(i % 3 == 0 ? most : most * part) * (i % 2 ? 1 : -1);
      }
    }
    if (data != Data::strange) return x;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; i < count / 700 + 1 && count > 0; ++i) {
      const T values[] = {nan, infinity, -infinity, most, -most, T(1e30), T(8388.5), T(-0.0)};
      x[random_() % count] = values[random_() % std::size(values)];
    }
    return x;
  }

  /// The same of a wave.
  const double* cut_of_wave(std::size_t count, unsigned member) {
    constexpr std::size_t apart = 1000;  // members, of which each has a phase
    const std::size_t first = apart * member;
    while (wave_.size() < first + count) {
      wave_.push_back(std::sin(static_cast<double>(wave_.size()) / apart));
    }
    return wave_.data() + first;
  }

  JointSum::Tally& tally(unsigned i) const { return word<JointSum::Tally>(i); }

  template <class T>
  Event give(const Case& one, const Parts& cut, unsigned i, bool again) {
    tally(i) = {};
    again_ += again;
    const bool brings = one.source < 0 || one.source == static_cast<int>(i);
    return queues_[i]->collectives().sum_jointly(
        type_of<T>, {.memory = at_,
                     .units = units_,
                     .is_on_host = is_on_host_,
                     .member = i,
                     .call = call_,
                     .grid = one.as_they_are ? codec::Grid{} : grid(one),
                     .how = one.how,
                     .begins = cut.begins,
                     .counts = cut.counts,
                     .readers = one.readers,
                     .source = one.source,
                     .input = brings ? input(i, one, sizeof(T)) : nullptr,
                     .out = out(i, one, sizeof(T)),
                     .again = again,
                     .tally = &tally(i),
                     .finds_range = one.finds_range});
  }

  const bool is_on_host_;
  std::vector<double> wave_;
  std::vector<std::uint32_t> units_;
  std::uint32_t laps_ = 1;
  std::uint64_t sent_ = 0, received_ = 0;
};

/// About even, but the last is short, and may be empty.
inline Parts parts(std::size_t count, unsigned members) {
  Parts made;
  std::size_t begin = 0;
  const std::size_t share = count / members + 3;
  for (unsigned i = 0; i < members; ++i) {
    const std::size_t end = i + 1 == members ? count : std::min(count, begin + share);
    made.begins.push_back(begin);
    made.counts.push_back(end - begin);
    begin = end;
  }
  return made;
}

}  // namespace mpress::joint_sum_test
