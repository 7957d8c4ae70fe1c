// What several members add up together in quanta of szp, or combine as it is, by kernels that wait
// for each other (joint_sum_members.hpp): counts, parts, data and members that come late. On the
// library given as the first argument, or the simulated one.
//
//   gpu_joint_sum_test [LIBRARY]

#include <bit>
#include <cstdio>
#include <iterator>
#include <random>
#include <utility>

#include "joint_sum_members.hpp"

using namespace mpress;
using namespace mpress::joint_sum_test;

namespace {

/// Of where elements lie and whether in place, all pairs with each other and with all else.
template <class T>
void all_goals(Place place, unsigned number) {
  const std::size_t most = 1 << 18;
  const auto units = static_cast<std::uint32_t>(most / number / joint::unit_bytes + 2);
  Members members(place, number, units, most);
  const std::size_t unit = joint::unit_elements(sizeof(T));
  bool is_odd = false;
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, number * unit,
                                  number * unit + 5, most / sizeof(T)}) {
    const Parts cut = parts(count, number);
    is_odd = !is_odd;
    for (const bool in_place : {false, true}) {
      const std::size_t skew = in_place == is_odd && count * sizeof(T) < most;
      Case one{.readers = members.all(), .in_place = in_place, .skew = skew};
      for (const Data data : all_data) {
        one.data = data;
        one.finds_range = !one.finds_range;
        if (skew == 0 || data == Data::strange) members.sum<T>(one, cut);
      }
      one.finds_range = true;
      members.sum<T>(one, cut);
      one.finds_range = false;
      one.reach = 1000.25;  // of noise and of smooth data, but not of wide
      for (const Data data : all_data) {
        one.data = data;
        if (skew == 0) members.sum<T>(one, cut);
      }
      one.reach = 0;
      one.data = Data::greatest;  // a multiple of the step may be infinite
      for (const double steps : {1.5, 2.5, 4.3, 9.1, 100.0, 5000.0}) {
        one.bound = static_cast<double>(std::numeric_limits<T>::max()) / steps;
        if (skew == 0) members.sum<T>(one, cut);
      }
      one.bound = 1e-3;
      one.as_they_are = true;
      one.data = Data::noise;
      for (const codec::Combine how : {codec::Combine::sum, codec::Combine::prod}) {
        one.how = how;
        members.sum<T>(one, cut);
      }
      one.data = Data::strange;
      for (const codec::Combine how : {codec::Combine::min, codec::Combine::max}) {
        one.how = how;
        if (skew == 0) members.sum<T>(one, cut);
      }
      one.how = codec::Combine::sum;
      one.data = Data::noise;
      one.as_they_are = skew > 0;
      one.readers = 2;
      members.sum<T>(one, cut);
      one.readers = 0;
      one.in_place = false;
      members.sum<T>(one, cut);
    }
  }
}

/// Of any bits, also where a member comes late, and of parts that are shorter than others.
void broadcasts(Place place, unsigned number) {
  const std::size_t most = 1 << 19;
  Members members(place, number, static_cast<std::uint32_t>(most / joint::unit_bytes + 1), most);
  for (const std::size_t count : {1, 1000, 4099, 100'000}) {
    for (unsigned source = 0; source < number; source += number - 1) {
      Parts cut = parts(count, number - 1);
      cut.begins.insert(cut.begins.begin() + source, 0);
      cut.counts.insert(cut.counts.begin() + source, 0);
      Case one{.readers = members.all() & ~(1u << source),
               .data = Data::strange,
               .as_they_are = true,
               .source = static_cast<int>(source)};
      members.sum<float>(one, cut);
      one.skew = 1;
      members.sum<float>(one, cut);
      one.late = number - 1;
      members.sum<float>(one, cut);
    }
  }
}

/// As many bytes of elements of twice the size.
Parts halves_of(Parts cut) {
  for (std::uint64_t& begin : cut.begins) begin /= 2;
  for (std::uint64_t& count : cut.counts) count /= 2;
  return cut;
}

/// Memory that has room for less is laid out as what has been made for less.
template <unsigned... members>
constexpr bool are_powers_of_two(std::integer_sequence<unsigned, members...>) {
  return ((std::has_single_bit(joint::most_units(members + 2, false)) &&
           std::has_single_bit(joint::most_units(members + 2, true))) &&
          ...);
}
static_assert(are_powers_of_two(std::make_integer_sequence<unsigned, joint::most_members - 1>()));

/// Parts of several laps, whole ones or not, some of them short or empty; also where a member comes
/// late. Memory is as ever behind them.
void laps(Place place, unsigned number, std::uint32_t ring = 8) {
  const std::size_t unit = joint::unit_elements(sizeof(float));
  Members members(place, number, ring, (6 * number * ring + 1) * joint::unit_bytes);
  for (const std::size_t longest : {ring * unit + 1, 2 * ring * unit, 5 * ring * unit + 700}) {
    for (const bool are_even : {true, false}) {
      Parts cut;
      std::size_t begin = 0;
      for (unsigned i = 0; i < number; ++i) {
        const std::size_t count = i == 0 || are_even ? longest : i == 1 ? 0 : longest / (i + 1);
        cut.begins.push_back(begin);
        cut.counts.push_back(count);
        begin += count;
      }
      for (const bool as_they_are : {false, true}) {
        const bool one_is_late = as_they_are == are_even;  // the others wait for it in vain first
        Case one{.readers = members.all(), .in_place = are_even, .as_they_are = as_they_are};
        one.finds_range = !as_they_are;
        members.sum<float>(one, cut);
        one.late = one_is_late ? 1 : 0;
        members.sum<float>(one, cut);
        one.in_place = false;
        one.readers = 1u << (number - 1);
        members.sum<float>(one, cut);
        one.late = one_is_late ? number - 1 : 0;
        one.readers = 0;
        members.sum<float>(one, cut);
      }
      members.sum<double>({.readers = members.all(), .data = Data::noise}, halves_of(cut));
      if (are_even) continue;
      const Case broadcast{.readers = members.all() & ~2u,
                           .late = longest % 2 == 0 ? 0 : number - 1,
                           .data = Data::strange,
                           .as_they_are = true,
                           .source = 1};
      members.sum<float>(broadcast, cut);
    }
  }
  members.sum<float>({.readers = members.all()}, parts(5 * unit, number));
  CHECK(members.again() > 0);
}

/// Kernels give up, and go on where they were, also where results have taken inputs' places.
void late_members(Place place) {
  Members members(place, 3, 32, 1 << 20);
  for (const std::size_t count : {100, 90'000}) {
    const Parts cut = parts(count, 3);
    for (unsigned late = 1; late < 3; ++late) {
      for (const bool in_place : {false, true}) {
        members.sum<float>({.readers = 7, .in_place = in_place, .late = late}, cut);
      }
      members.sum<double>({.late = late, .finds_range = true}, cut);
    }
  }
  CHECK(members.again() > 0);
}

/// Flags of calls before are no others', and rows are as short as their quanta.
void many_calls(Place place) {
  Members members(place, 2, 32, 1 << 19);
  std::mt19937 random(9);
  for (int i = 0; i < 150; ++i) {
    const Parts cut = parts(1 + random() % (random() % 2 == 0 ? 40 : 60'000), 2);
    members.sum<float>({.readers = random() % 3 == 0 ? 0 : members.all(),
                        .data = all_data[random() % std::size(all_data)]},
                       cut);
  }
  members.take_sent();
  const Parts cut = parts(100'000, 2);
  members.sum<float>({.readers = 3, .data = Data::noise}, cut);
  const std::uint64_t noise = members.take_sent();
  CHECK(noise > 0 && noise <= 2 * 100'000 * sizeof(float) + 2 * 200 * sizeof(joint::RowHead));
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
    broadcasts(place, 3);
    laps(place, 3);
    late_members(place);
    many_calls(place);
  }
  for (const unsigned number : {2u, 8u}) all_goals<float>(Place::device, number);
  all_goals<double>(Place::device, 3);
  for (const unsigned number : {2u, 5u}) broadcasts(Place::device, number);
  for (const unsigned number : {2u, 4u}) laps(Place::device, number);
  laps(Place::pinned, 2, joint::rounds_a_lap);
  return check::failures != 0;
}
