// The runs of scattered messages: joined, kept short where they are regular, and in order.
#include <random>
#include <vector>

#include "check.hpp"
#include "gpu/runs.hpp"

using namespace mpress;
using gpu::Run;
using gpu::RunList;
using gpu::Runs;

namespace {

std::vector<Run> joined(const std::vector<Run>& runs) {
  std::vector<Run> result;
  for (const Run& run : runs) {
    if (run.bytes == 0) continue;
    const bool touches =
        !result.empty() &&
        result.back().offset + static_cast<std::int64_t>(result.back().bytes) == run.offset;
    if (touches) {
      result.back().bytes += run.bytes;
    } else {
      result.push_back(run);
    }
  }
  return result;
}

template <class All>
bool are(const All& all, const std::vector<Run>& expected) {
  std::size_t i = 0;
  bool same = true;
  all.for_each([&](const Run& run) {
    same = same && i < expected.size() && run.offset == expected[i].offset &&
           run.bytes == expected[i].bytes;
    ++i;
  });
  return same && i == expected.size();
}

void check_all(const std::vector<Run>& runs) {
  const std::vector<Run> expected = joined(runs);
  RunList list;
  for (const Run& run : runs) list.add(run.offset, run.bytes);
  CHECK(are(list, expected));
  CHECK(are(Runs(list), expected));
  CHECK(list.size() == expected.size());
}

void regular_ones() {
  RunList column;
  column.add(8, 8, 24, 1000);
  CHECK(Runs(column).are_regular() && Runs(column).regular().inner == 1000);
  RunList face;
  for (int row = 0; row < 5; ++row) face.add(row * 1000, 4, 16, 10);
  face.add(5000, 4, 16, 3);
  CHECK(Runs(face).are_regular() && Runs(face).regular().count == 53);
  CHECK(Runs(face).regular().outer == 1000);
  RunList twice;
  twice.add(column, 0);
  twice.add(column, 100000);
  CHECK(Runs(twice).are_regular() && Runs(twice).regular().count == 2000);
  RunList solid;  // rows that fill the array
  solid.add(0, 64, 64, 1000);
  CHECK(solid.is_one() && solid.first().bytes == 64000);
  CHECK(!Runs(solid).are_regular() && Runs(solid).listed().size() == 1);
  CHECK(Runs(RunList()).listed().empty() && !Runs(RunList()).are_regular());
  face.add(7000, 8);
  CHECK(!Runs(face).are_regular());
}

/// Few lengths and distances, so that all sorts of regular pieces come, and touch.
void random_ones() {
  std::mt19937 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const unsigned lengths = 1 + random() % 3, distances = 1 + random() % 4;
    std::vector<Run> runs, added;
    RunList list;
    std::int64_t at = static_cast<std::int64_t>(random() % 100) - 50;
    for (unsigned i = random() % 20; i > 0; --i) {
      const std::uint64_t bytes = 4 * (random() % lengths), count = random() % 5;
      const std::int64_t stride =
          4 * static_cast<std::int64_t>(random() % distances) - (random() % 8 == 0 ? 40 : 0);
      list.add(at, bytes, stride, count);
      for (std::uint64_t j = 0; j < count; ++j) {
        added.push_back({at + static_cast<std::int64_t>(j) * stride, bytes});
      }
      at += 4 * static_cast<std::int64_t>(random() % distances);
    }
    CHECK(are(list, joined(added)));
    CHECK(are(Runs(list), joined(added)));
    check_all(added);
    RunList moved;
    moved.add(list, 12);
    moved.add(list, 512);
    std::vector<Run> both;
    for (const std::int64_t offset : {12, 512}) {
      for (const Run& run : joined(added)) both.push_back({run.offset + offset, run.bytes});
    }
    CHECK(are(moved, joined(both)));
  }
}

}  // namespace

int main() {
  regular_ones();
  random_ones();
  return 0;
}
