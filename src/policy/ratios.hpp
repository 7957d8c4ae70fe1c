// What messages were seen to become, and what was decided about the like of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/element.hpp"
#include "codec/spec.hpp"
#include "policy/profile.hpp"

namespace mpress::policy {

inline constexpr std::size_t size_classes = 48;

/// Sizes within a factor of two.
inline std::size_t size_class(std::size_t bytes) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes)), size_classes - 1);
}

/// By codec, element type and size class, for one communicator. Thread-safe; what threads learn at
/// the same time may lag.
class Ratios {
 public:
  struct Seen {
    std::atomic<float> wire_per_raw{0};  ///< a running average
    std::atomic<std::uint32_t> samples{0};
    std::atomic<std::uint32_t> skipped{0};  ///< messages left raw since the last look
    std::atomic<bool> pays{false};          ///< what was decided last
  };

  Ratios() = default;
  Ratios(const Ratios&) = delete;
  Ratios& operator=(const Ratios&) = delete;
  ~Ratios() { delete table_.load(std::memory_order_relaxed); }

  Seen& at(Codec codec, ElementType type, std::size_t bytes) {
    return table()
        .seen[static_cast<std::size_t>(codec) - 1][type == ElementType::f64][size_class(bytes)];
  }

  /// What encoding made of the like of it lately, over its bytes; 0: it is not known.
  double wire_per_raw(Codec codec, ElementType type, std::size_t bytes) {
    return at(codec, type, bytes).wire_per_raw.load(std::memory_order_relaxed);
  }

 private:
  struct Table {
    Seen seen[codec_count - 1][2][size_classes];
  };

  /// Many communicators never carry a message that is worth a table.
  Table& table() {
    if (Table* made = table_.load(std::memory_order_acquire)) return *made;
    auto fresh = std::make_unique<Table>();
    Table* none = nullptr;
    if (table_.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) {
      return *fresh.release();
    }
    return *none;
  }

  std::atomic<Table*> table_{nullptr};
};

}  // namespace mpress::policy
