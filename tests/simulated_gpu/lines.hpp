// Lines (gpu/lines.hpp) as simulated devices store and load them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "await.hpp"
#include "gpu/lines.hpp"

namespace mpress::simulated {

/// Those of a member in another's memory.
class LinesView {
 public:
  LinesView(std::byte* first, bool are_dense) : first_(first), are_dense_(are_dense) {}

  void store(const std::byte* data, std::size_t bytes, std::uint32_t number) const {
    for (std::size_t i = 0; i * payload() < bytes; ++i) {
      std::uint32_t word[3] = {};
      std::memcpy(word, data + i * payload(), std::min(payload(), bytes - i * payload()));
      // The number comes last.
      if (are_dense_) {
        for (std::size_t k = 0; k < 3; ++k) at(i, k).store(word[k], std::memory_order_relaxed);
        at(i, 3).store(number, std::memory_order_release);
      } else {
        for (std::size_t k = 0; k < 2; ++k) {
          half(i, k).store(std::uint64_t{number} << 32 | word[k], std::memory_order_release);
        }
      }
    }
  }

  /// False where they did not come; `stop` as await()'s.
  bool load(std::byte* data, std::size_t bytes, std::uint32_t number, std::uint32_t* stop) const {
    for (std::size_t i = 0; i * payload() < bytes; ++i) {
      std::uint32_t word[3] = {};
      const auto has_come = [&] {
        if (are_dense_) {
          if (at(i, 3).load(std::memory_order_acquire) != number) return false;
          for (std::size_t k = 0; k < 3; ++k) word[k] = at(i, k).load(std::memory_order_relaxed);
          return true;
        }
        bool have_both = true;
        for (std::size_t k = 0; k < 2; ++k) {
          const std::uint64_t found = half(i, k).load(std::memory_order_acquire);
          word[k] = static_cast<std::uint32_t>(found);
          have_both = have_both && found >> 32 == number;
        }
        return have_both;
      };
      if (!await(has_come, stop)) return false;
      std::memcpy(data + i * payload(), word, std::min(payload(), bytes - i * payload()));
    }
    return true;
  }

 private:
  std::size_t payload() const { return are_dense_ ? gpu::dense_payload : gpu::paired_payload; }
  std::atomic_ref<std::uint32_t> at(std::size_t line, std::size_t word) const {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(first_ + line * gpu::line_bytes)[word]);
  }
  std::atomic_ref<std::uint64_t> half(std::size_t line, std::size_t which) const {
    return std::atomic_ref(
        reinterpret_cast<std::uint64_t*>(first_ + line * gpu::line_bytes)[which]);
  }

  std::byte* const first_;
  const bool are_dense_;
};

}  // namespace mpress::simulated
