// What is refused while much is on its way: it costs few looks at that, and what has room is found.

#include <cstddef>
#include <deque>

#include "check.hpp"
#include "link/sizes.hpp"

using namespace mpress::link;

namespace {

/// Room for so many, which those that are over give back once they are looked at.
struct Sends {
  std::size_t room;
  std::deque<bool*> sent{};
  FullLooks looks{};
  std::size_t looked_at = 0;

  bool reserve(bool& is_over) {
    const auto reclaim = [this](std::size_t count) {
      const auto is_done = [this](const bool* over) { return ++looked_at, *over; };
      reclaim_oldest(sent, count, is_done, [this](bool*) { ++room; });
    };
    return attempt_reserving(looks, sent, reclaim, [&] {
      if (room == 0) return false;
      --room;
      sent.push_back(&is_over);
      return true;
    });
  }
};

void many_refusals_cost_little() {
  constexpr std::size_t many = 16384;
  bool is_over = false;
  Sends sends{many};
  for (std::size_t i = 0; i < many; ++i) CHECK(sends.reserve(is_over));
  sends.looked_at = 0;
  for (std::size_t i = 0; i < many; ++i) CHECK(!sends.reserve(is_over));
  CHECK(sends.looked_at <= many * (reclaimed_first + 17));
  is_over = true;
  CHECK(sends.reserve(is_over));
}

void the_only_one_that_is_over_is_found() {
  constexpr std::size_t few = 15;  // of more, one in so many attempts looks at all
  bool waits = false;
  bool is_over = false;
  Sends sends{few};
  for (std::size_t i = 0; i < few; ++i) CHECK(sends.reserve(i + 1 == few ? is_over : waits));
  for (int i = 0; i < 5; ++i) CHECK(!sends.reserve(waits));
  is_over = true;
  CHECK(sends.reserve(waits));
}

/// Attempts that are left out for what was on its way before do not outlast it.
void skips_end_with_what_they_were_for() {
  bool waits = false;
  bool is_over = true;
  Sends sends{4096};
  for (int i = 0; i < 4096; ++i) CHECK(sends.reserve(waits));
  CHECK(!sends.reserve(waits));
  sends.sent.assign(40, &waits);
  sends.sent.push_back(&is_over);  // the last that a few looks at a time find
  unsigned attempts = 1;
  while (!sends.reserve(waits) && attempts < 100) ++attempts;
  CHECK(attempts <= 3);
}

}  // namespace

int main() {
  many_refusals_cost_little();
  the_only_one_that_is_over_is_found();
  skips_end_with_what_they_were_for();
  return check::failures != 0;
}
