// Will the next message into memory of a device be a header? An MPI that takes such memory would
// put it there, from where it has to be copied to the host before anybody can look at it: with that
// and with MPI's own copy a short message takes twice as long. So where headers have been coming,
// such receives get host memory.
//
// A raw message that comes there is right, and slow: after one, the next forecast takes twice as
// many headers in a row.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mpress::engine {

/// By the capacity of receives, in powers of two. Thread-safe.
class HeaderForecast {
 public:
  /// Is a receive of `bytes` bytes sooner looked at in host memory?
  bool expects(std::size_t bytes) const {
    const Class& one = classes_[index(bytes)];
    return one.row.load(std::memory_order_relaxed) >= one.needed.load(std::memory_order_relaxed);
  }

  /// A header came to a receive of `bytes` bytes.
  void header_came(std::size_t bytes) {
    Class& one = classes_[index(bytes)];
    const std::uint32_t row = one.row.load(std::memory_order_relaxed);
    if (row < most) one.row.store(row + 1, std::memory_order_relaxed);
  }

  /// A message came that is none.
  void other_came(std::size_t bytes) {
    Class& one = classes_[index(bytes)];
    if (expects(bytes)) {
      const std::uint32_t needed = one.needed.load(std::memory_order_relaxed);
      one.needed.store(std::min(2 * needed, most), std::memory_order_relaxed);
    }
    one.row.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t most = 1 << 16;
  struct Class {
    std::atomic<std::uint32_t> row{0};  ///< headers since the last other message
    std::atomic<std::uint32_t> needed{3};
  };
  static std::size_t index(std::size_t bytes) {
    return static_cast<std::size_t>(std::bit_width(bytes));
  }

  std::array<Class, 65> classes_;
};

}  // namespace mpress::engine
