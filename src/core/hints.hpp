// Hints: settings that a program gives the messages of one communicator. They rule over those of
// the environment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "codec/spec.hpp"
#include "policy/ratios.hpp"

namespace mpress::engine {

/// A hint as it was given, and what it means.
template <typename T>
struct Hint {
  std::string text;
  T value;
};

/// The hints of one MPI_Info; what it does not mention is empty.
struct Hints {
  std::optional<Hint<Spec>> codec;
  std::optional<Hint<std::size_t>> threshold;
  std::optional<Hint<std::size_t>> chunk;
  std::optional<Hint<bool>> reproducible;

  bool empty() const { return !codec && !threshold && !chunk && !reproducible; }

  /// Takes over what `later` mentions.
  void update(const Hints& later);
};

/// The hints of a communicator. Thread-safe; where nothing was set, reading them takes no lock.
class CommHints {
 public:
  void update(const Hints& later);
  Hints get() const;

  Spec codec(const Spec& fallback) const;

  /// Members have announced which codec they gave: all the same?
  enum class Shared : unsigned char { unknown, same, different };
  Shared shared_codec() const { return shared_codec_.load(std::memory_order_relaxed); }
  void set_shared_codec(Shared shared) { shared_codec_.store(shared, std::memory_order_relaxed); }

  std::size_t threshold(std::size_t fallback) const { return value_of(threshold_, fallback); }
  std::size_t chunk(std::size_t fallback) const { return value_of(chunk_, fallback); }
  bool reproducible(bool fallback) const {
    const int hint = reproducible_.load(std::memory_order_relaxed);
    return hint < 0 ? fallback : hint != 0;
  }

 private:
  static constexpr std::size_t unset = SIZE_MAX;  ///< and no message is that large
  static std::size_t value_of(const std::atomic<std::size_t>& hint, std::size_t fallback) {
    const std::size_t bytes = hint.load(std::memory_order_relaxed);
    return bytes == unset ? fallback : bytes;
  }

  mutable std::mutex mutex_;
  Hints hints_;
  std::atomic<bool> has_codec_{false};
  std::atomic<Shared> shared_codec_{Shared::unknown};
  std::atomic<std::size_t> threshold_{unset};
  std::atomic<std::size_t> chunk_{unset};
  std::atomic<int> reproducible_{-1};  ///< below 0: not set
};

/// Bounds of the hints that the communicators of a rank have, or had. Thread-safe.
class HintBounds {
 public:
  /// Before a communicator gets these.
  void include(const Hints& given);

  /// SIZE_MAX: no communicator has one.
  std::size_t least_threshold() const { return least_threshold_.load(std::memory_order_relaxed); }
  /// Has any communicator been asked to be reproducible?
  bool any_reproducible() const { return any_reproducible_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> least_threshold_{SIZE_MAX};
  std::atomic<bool> any_reproducible_{false};
};

/// Settings that the messages of a communicator share.
struct CommSettings {
  CommHints hints;
  /// Ratios that the policy has learned of them.
  const std::shared_ptr<policy::Ratios> ratios = std::make_shared<policy::Ratios>();
};

}  // namespace mpress::engine
