// What several members combine together, by kernels that wait for each other: beside the host's
// combine_all(), bit for bit. All members are of this process, on one device, each with a queue of
// its own. On the library given as the first argument, or the simulated one.
//
//   gpu_joint_test [LIBRARY]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "check.hpp"
#include "codec/combine.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "joint_members.hpp"
#include "queues.hpp"

using namespace mpress;
using codec::Combine;
using gpu::Joint;
using gpu::Place;

namespace joint = gpu::joint;

namespace {

enum class Goal { all, root, each };

struct Case {
  Combine how = Combine::sum;
  Goal goal = Goal::all;
  bool gathers = false;  ///< two shots
  bool in_place = false;
  bool in_lines = false;
  std::size_t skew = 0;  ///< elements in front of input and result
  unsigned late = 0;     ///< a member that comes last, after the others have given up
};

/// Members with joint memory for vectors of up to `most` bytes, of the device or of the host; or,
/// `are_brief`, for brief ones alone.
class Members : public JointMembers {
 public:
  Members(Place place, unsigned number, std::size_t most, bool has_long_lines = true,
          bool are_brief = false)
      : JointMembers(most), has_long_lines_(has_long_lines) {
    const std::size_t bytes = are_brief ? 0 : most;
    for (unsigned i = 0; i < number; ++i) {
      add(place, joint::memory_bytes(number, bytes, has_long_lines),
          joint::cleared_bytes(number, bytes, has_long_lines), 64);
    }
  }

  /// May parts of up to `bytes` bytes travel so?
  bool may_go_in_lines(std::size_t bytes, bool gathers) const {
    return joint::is_brief(bytes, gathers) || (has_long_lines_ && bytes <= joint::most_in_lines);
  }

  template <class T>
  void combine(const Case& one, std::span<const std::uint64_t> begins) {
    const std::size_t count = begins.back(), bytes = count * sizeof(T);
    CHECK(bytes <= most_);
    std::vector<std::vector<T>> inputs;
    for (unsigned i = 0; i < number(); ++i) {
      const double* const noise = cut_of_noise(count);
      inputs.emplace_back(noise, noise + count);
      put(*queues_[i], input(i, one, sizeof(T)), inputs[i].data(), bytes);
    }
    ++call_;
    call_jointly(
        queues_, one.late, [&](unsigned i, bool again) { return give<T>(one, begins, i, again); },
        [&](unsigned i) { return load(undone(i)) != 0; });
    std::vector<T> expected(count);
    std::vector<const void*> views;
    for (const auto& input : inputs) views.push_back(input.data());
    codec::combine_all(one.how, type_of<T>, views, expected.data(), count);
    for (unsigned i = 0; i < number(); ++i) {
      const bool is_part = one.goal == Goal::each;
      if (one.goal == Goal::root && i != 1) continue;
      const std::uint64_t begin = is_part ? begins[i] : 0;
      const std::uint64_t end = is_part ? begins[i + 1] : count;
      const std::vector<std::byte> got =
          bytes_of(*queues_[i], out(i, one, sizeof(T)), (end - begin) * sizeof(T));
      CHECK(std::memcmp(got.data(), expected.data() + begin, got.size()) == 0);
    }
  }

 private:
  std::uint32_t& undone(unsigned i) const { return word<std::uint32_t>(i); }

  template <class T>
  Event give(const Case& one, std::span<const std::uint64_t> begins, unsigned i, bool again) {
    undone(i) = 0;
    again_ += again;
    const std::uint32_t combiners = one.goal == Goal::root ? 2 : (1u << number()) - 1;
    const Joint given{at_,
                      i,
                      call_,
                      begins,
                      combiners,
                      one.gathers,
                      one.in_lines,
                      has_long_lines_,
                      input(i, one, sizeof(T)),
                      out(i, one, sizeof(T)),
                      again,
                      &undone(i)};
    return queues_[i]->collectives().combine_jointly(one.how, type_of<T>, given);
  }

  const bool has_long_lines_;
};

std::vector<std::uint64_t> one_part(std::size_t count) { return {0, count}; }

/// About even, but the last is short, and may be empty.
std::vector<std::uint64_t> parts(std::size_t count, unsigned members) {
  std::vector<std::uint64_t> begins{0};
  const std::size_t share = count / members + 3;
  for (unsigned i = 0; i < members; ++i) begins.push_back(std::min(count, begins.back() + share));
  begins.back() = count;
  return begins;
}

std::uint64_t longest(const std::vector<std::uint64_t>& begins) {
  std::uint64_t longest = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) {
    longest = std::max(longest, begins[i] - begins[i - 1]);
  }
  return longest;
}

/// Those of the host have no long lines.
bool has_long_lines(Place place) { return place == Place::device; }

/// Of where elements lie and whether in place, all pairs with each other and with all else.
template <class T>
void all_goals(Place place, unsigned number) {
  Members members(place, number, 1 << 20, has_long_lines(place));
  const std::size_t brief = joint::most_brief / sizeof(T), most = joint::most_in_lines / sizeof(T);
  bool is_odd = false;
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{7}, std::size_t{1000}, brief, brief + 1, std::size_t{50'001},
        most, most + 1, (1 << 20) / sizeof(T)}) {
    is_odd = !is_odd;
    for (const bool in_place : {false, true}) {
      const std::size_t skew = in_place == is_odd && count * sizeof(T) < 1 << 20;
      for (const bool in_lines : {false, true}) {
        Case one{.in_place = in_place, .in_lines = in_lines, .skew = skew};
        if (!in_lines || members.may_go_in_lines(count * sizeof(T), false)) {
          members.combine<T>(one, one_part(count));
          one.goal = Goal::root;
          members.combine<T>(one, one_part(count));
        }
        const std::size_t part = longest(parts(count, number)) * sizeof(T);
        if (!in_lines || members.may_go_in_lines(part, true)) {
          one.goal = Goal::all;
          one.gathers = true;
          members.combine<T>(one, parts(count, number));
        }
        if (!in_lines || members.may_go_in_lines(part, false)) {
          one.goal = Goal::each;
          one.gathers = false;
          one.in_place = false;
          members.combine<T>(one, parts(count, number));
        }
      }
    }
  }
}

template <class T>
void all_combinations(Place place) {
  Members members(place, 3, 1 << 18, has_long_lines(place));
  const bool in_lines = members.may_go_in_lines(longest(parts(20'003, 3)) * sizeof(T), true);
  for (const Combine how : {Combine::sum, Combine::min, Combine::max, Combine::prod}) {
    members.combine<T>({.how = how, .in_lines = true}, one_part(501));
    members.combine<T>({.how = how, .gathers = true, .in_lines = in_lines}, parts(20'003, 3));
    members.combine<T>({.how = how}, one_part(20'003));
    members.combine<T>({.how = how, .gathers = true}, parts(20'003, 3));
  }
}

/// Kernels give up, and go on where they were, also where results have taken inputs' places.
void late_members(Place place) {
  Members members(place, 3, 1 << 20, has_long_lines(place));
  for (const std::size_t count : {100, 50'000, 190'000}) {
    for (unsigned late = 1; late < 3; ++late) {
      for (const bool in_place : {false, true}) {
        for (const bool in_lines : {false, true}) {
          if (!in_lines || members.may_go_in_lines(count * sizeof(float), false)) {
            members.combine<float>({.in_place = in_place, .in_lines = in_lines, .late = late},
                                   one_part(count));
          }
          const std::size_t part = longest(parts(count, 3)) * sizeof(float);
          if (in_lines && !members.may_go_in_lines(part, true)) continue;
          members.combine<float>(
              {.gathers = true, .in_place = in_place, .in_lines = in_lines, .late = late},
              parts(count, 3));
        }
      }
    }
  }
  CHECK(members.again() > 0);
}

/// Flags and lines of calls before are no others'.
void many_calls(Place place) {
  for (const bool has_lines : {has_long_lines(place), false}) {
    Members members(place, 2, 1 << 17, has_lines);
    std::mt19937 random(9);
    for (int i = 0; i < 200; ++i) {
      const std::size_t count = 1 + random() % (random() % 2 == 0 ? 40 : 30'000);
      const bool gathers = random() % 3 == 0;
      const std::vector<std::uint64_t> cut = gathers ? parts(count, 2) : one_part(count);
      const bool may_be = members.may_go_in_lines(longest(cut) * sizeof(float), gathers);
      members.combine<float>({.gathers = gathers,
                              .in_place = random() % 2 == 0,
                              .in_lines = may_be && random() % 2 == 0},
                             cut);
    }
  }
}

/// In memory for those alone: parts of all lengths that may be brief.
void brief_calls(Place place) {
  Members members(place, 3, 1 << 17, false, true);
  constexpr std::size_t most = joint::most_brief / sizeof(float);
  for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, most}) {
    members.combine<float>({.in_lines = true}, one_part(count));
    members.combine<float>({.goal = Goal::root, .in_lines = true}, one_part(count));
    members.combine<float>({.goal = Goal::each, .in_lines = true},
                           std::vector<std::uint64_t>{0, count, 2 * count, 3 * count});
    members.combine<float>({.gathers = true, .in_place = true, .in_lines = true},
                           std::vector<std::uint64_t>{0, count / 2, count / 2 * 2, count / 2 * 3});
  }
}

}  // namespace

int main(int argc, char** argv) {
  gpu::choose(argc > 1 ? argv[1] : MPRESS_SIMULATED_GPU);
  if (!gpu::gpu()) {
    std::fprintf(stderr, "%s\n", gpu::why_not().c_str());
    return 2;
  }
  for (const Place place : {Place::device, Place::pinned}) {
    all_goals<float>(place, 3);
    all_combinations<double>(place);
    late_members(place);
    many_calls(place);
    brief_calls(place);
  }
  for (const unsigned number : {2u, 8u}) all_goals<float>(Place::device, number);
  all_goals<double>(Place::device, 3);
  all_combinations<float>(Place::device);
  return check::failures != 0;
}
