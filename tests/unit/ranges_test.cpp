// Room within a block: what is taken overlaps nothing, what is given back is found again, whole.

#include "memory/ranges.hpp"

#include <random>
#include <vector>

#include "check.hpp"

using namespace mpress;

namespace {

void neighbours_become_one() {
  memory::Ranges ranges(100);
  CHECK(ranges.take(40) == 0 && ranges.take(40) == 40 && !ranges.fits(40) && !ranges.take(40));
  CHECK(ranges.fits(20) && ranges.take(20) == 80 && !ranges.fits(1));
  ranges.give(0, 40);
  ranges.give(80, 20);
  CHECK(ranges.fits(40) && !ranges.fits(41));
  ranges.give(40, 40);  // between the two
  CHECK(ranges.fits(100) && !ranges.fits(101));
  CHECK(ranges.take(100) == 0);
  ranges.give(0, 100);
  CHECK(ranges.take(1) == 0);
}

void an_empty_block_has_no_room() {
  const memory::Ranges ranges(0);
  CHECK(!ranges.fits(1));
}

/// The same as a plain array of units would do.
void is_as_a_list_of_units() {
  constexpr std::size_t size = 257;
  struct Taken {
    std::uint64_t begin, size;
  };
  std::mt19937 random(1);
  memory::Ranges ranges(size);
  std::vector<bool> is_taken(size);
  std::vector<Taken> taken;
  for (int round = 0; round < 20000; ++round) {
    if (random() % 2 == 0 && !taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      const Taken given = taken.back();
      taken.pop_back();
      ranges.give(given.begin, given.size);
      for (std::uint64_t i = 0; i < given.size; ++i) is_taken[given.begin + i] = false;
      continue;
    }
    const std::uint64_t wanted = 1 + random() % (round % 100 == 0 ? size : 20);
    std::size_t begin = 0, room = 0;
    for (std::size_t i = 0; i < size && room < wanted; ++i) {
      if (is_taken[i]) begin = i + 1;
      room = is_taken[i] ? 0 : room + 1;
    }
    CHECK(ranges.fits(wanted) == (room == wanted));
    const auto found = ranges.take(wanted);
    CHECK(found.has_value() == (room == wanted));
    if (!found) continue;
    CHECK(*found == begin);
    for (std::uint64_t i = 0; i < wanted; ++i) is_taken[*found + i] = true;
    taken.push_back({*found, wanted});
  }
}

}  // namespace

int main() {
  neighbours_become_one();
  an_empty_block_has_no_room();
  is_as_a_list_of_units();
  return check::failures != 0;
}
