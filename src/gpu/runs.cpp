#include "gpu/runs.hpp"

#include <algorithm>
#include <utility>

namespace mpress::gpu {
namespace {

/// Of two runs or more; a count of 0 where they are not regular. A part at a time, the comparisons
/// of which the compiler makes vectors of.
RegularRuns regular_of(std::span<const Run> runs) {
  if (runs.size() < 2 || runs.size() > UINT32_MAX || runs[0].bytes == 0) return {};
  const auto count = static_cast<std::uint32_t>(runs.size());
  const std::int64_t first = runs[0].offset;
  const std::int64_t stride = runs[1].offset - first;
  const std::uint64_t bytes = runs[0].bytes;
  constexpr std::uint32_t part = 64;
  // How many runs from `begin` on, at most `most`, lie at the stride from the first of them.
  const auto row = [&](std::uint32_t begin, std::uint32_t most) {
    const Run* const run = &runs[begin];
    std::uint32_t length = 0;
    for (; length + part <= most; length += part) {
      std::uint64_t other = 0;
      for (std::uint32_t i = length; i < length + part; ++i) {
        other |= static_cast<std::uint64_t>(run[i].offset - run[0].offset - i * stride) |
                 (run[i].bytes ^ bytes);
      }
      if (other != 0) break;
    }
    while (length < most && run[length].bytes == bytes &&
           run[length].offset == run[0].offset + length * stride) {
      ++length;
    }
    return length;
  };
  const std::uint32_t inner = row(0, count);
  const std::int64_t outer = inner < count ? runs[inner].offset - first : 0;
  for (std::uint32_t done = inner, rows = 1; done < count; done += inner, ++rows) {
    const std::uint32_t most = std::min(inner, count - done);
    if (runs[done].offset != first + rows * outer || row(done, most) != most) return {};
  }
  return {first, stride, outer, bytes, inner, count};
}

}  // namespace

Runs::Runs(std::vector<Run> runs) : regular_(regular_of(runs)) {
  if (!are_regular()) listed_ = std::move(runs);
}

}  // namespace mpress::gpu
