#include "core/hints.hpp"

#include "core/changes.hpp"

namespace mpress::engine {

void Hints::update(const Hints& later) {
  if (later.codec) codec = later.codec;
  if (later.threshold) threshold = later.threshold;
  if (later.chunk) chunk = later.chunk;
  if (later.reproducible) reproducible = later.reproducible;
}

void CommHints::update(const Hints& later) {
  std::lock_guard lock(mutex_);
  hints_.update(later);
  if (hints_.threshold) threshold_.store(hints_.threshold->value, std::memory_order_relaxed);
  if (hints_.chunk) chunk_.store(hints_.chunk->value, std::memory_order_relaxed);
  if (hints_.reproducible) {
    reproducible_.store(hints_.reproducible->value, std::memory_order_relaxed);
  }
  has_codec_.store(hints_.codec.has_value(), std::memory_order_release);
  note_change();
}

Hints CommHints::get() const {
  std::lock_guard lock(mutex_);
  return hints_;
}

Spec CommHints::codec(const Spec& fallback) const {
  if (!has_codec_.load(std::memory_order_acquire)) return fallback;
  std::lock_guard lock(mutex_);
  return hints_.codec->value;
}

void HintBounds::include(const Hints& given) {
  if (given.reproducible && given.reproducible->value) {
    any_reproducible_.store(true, std::memory_order_relaxed);
  }
  if (!given.threshold) return;
  const std::size_t bytes = given.threshold->value;
  std::size_t least = least_threshold();
  while (bytes < least && !least_threshold_.compare_exchange_weak(least, bytes)) {
  }
}

}  // namespace mpress::engine
