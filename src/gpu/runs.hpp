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

/// Runs as they are found, in order. Those that touch are one, and those of one length at one
/// distance are kept as what they have in common: a message may have a run for every few bytes.
class RunList {
 public:
  /// `count` of them, the first at `offset`.
  void add(std::int64_t offset, std::uint64_t bytes, std::int64_t stride = 0,
           std::uint64_t count = 1);

  /// Those of another list, `offset` bytes further on.
  void add(const RunList& other, std::int64_t offset);

  std::uint64_t size() const;
  bool is_one() const { return rows_.size() == 1 && rows_[0].count == 1; }
  Run first() const { return {rows_[0].offset, rows_[0].bytes}; }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Row& row : rows_) {
      for (std::uint64_t i = 0; i < row.count; ++i) {
        visit(Run{row.offset + static_cast<std::int64_t>(i) * row.stride, row.bytes});
      }
    }
  }

 private:
  friend class Runs;
  struct Row {
    std::int64_t offset;
    std::uint64_t bytes;
    std::int64_t stride;
    std::uint64_t count;
  };

  void add_run(std::int64_t offset, std::uint64_t bytes);

  std::vector<Row> rows_;
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

/// The runs of a message, in order. Regular ones are not listed.
class Runs {
 public:
  Runs() = default;
  explicit Runs(const RunList& list);

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
