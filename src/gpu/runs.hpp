// The contiguous pieces of a scattered message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mpress::gpu {

/// Where it lies from the buffer's address on, and how many bytes it has.
struct Run {
  std::int64_t offset;
  std::uint64_t bytes;
};

/// Runs of one length at distances of one or two levels, such as columns and faces have: run i lies
/// at first + i % inner * stride + i / inner * outer.
struct RegularRuns {
  std::int64_t first = 0;
  std::int64_t stride = 0;
  std::int64_t outer = 0;
  std::uint64_t bytes = 0;
  std::uint32_t inner = 1;
  std::uint32_t count = 0;
};

/// The runs of a message, in order. A list of regular ones is not kept: it may have one for every
/// few bytes.
class Runs {
 public:
  Runs() = default;
  explicit Runs(std::vector<Run> runs);

  bool are_regular() const { return regular_.count > 0; }
  const RegularRuns& regular() const { return regular_; }

  /// Those that are not regular.
  std::span<const Run> listed() const { return listed_; }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < regular_.count; ++i) {
      visit(Run{regular_.first + i % regular_.inner * regular_.stride +
                    i / regular_.inner * regular_.outer,
                regular_.bytes});
    }
    for (const Run& run : listed_) visit(run);
  }

 private:
  RegularRuns regular_;
  std::vector<Run> listed_;
};

}  // namespace mpress::gpu
