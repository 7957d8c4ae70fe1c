// Decisions about messages that MPI gets as they are, kept for the messages that follow.
//
// A call of a driver evicts the data of mpress from the processor's caches, and under an MPI that
// takes memory of devices each message has such a call. Reading again all that a decision rests on
// takes longer than the decision. So a thread keeps its last decisions, a cache line each, rather
// than the endpoint, whose lines threads would take from each other.
//
// A decision is kept where it does not depend on the place of the program's buffer: where no place
// would change it, where no GPU is in use, or where an MPI takes memory of the host and of devices
// alike. An encoded message is decided about each time, as its ratio counts.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/changes.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class alignas(64) CachedDecision {
 public:
  /// A message as its call describes it. Handles may come again for other objects; the end of one
  /// counts as a change.
  struct Key {
    trace::Op op;
    int peer;  ///< the rank that the call names
    std::uintptr_t comm, type;
    std::int64_t count;
  };

  /// Of a decision that nothing but a change undoes.
  static constexpr std::uint32_t always = UINT32_MAX;
  /// Of a decision that rests on what the policy learns: so many messages go by it. With the one
  /// that was decided about, their number is none that programs repeat messages in.
  static constexpr std::uint32_t some = 16;

  /// The decision that holds for this message, which counts as one of those; null: there is none.
  /// Valid until the thread's next call of MPI's.
  static const CachedDecision* find(const Key& key) {
    const std::uint64_t now = CachedDecision::now();
    CachedDecision& of_range = at(key, size_class(key.count));
    if (of_range.holds_for(key, now)) return of_range.use() ? &of_range : nullptr;
    CachedDecision& of_size = at(key, key.count);
    return of_size.holds_for(key, now) && of_size.use() ? &of_size : nullptr;
  }

  struct Kept {
    std::uint32_t left;        ///< for at most so many messages
    std::int64_t least, most;  ///< of so many items, the key's count among them
    std::size_t item_bytes;
    trace::Row* row;  ///< where the message was counted
    bool is_of_host;  ///< as long as the process uses no GPU
  };

  /// `changes`: now() before the decision.
  static void keep(const Key& key, const Kept& kept, std::uint64_t changes);

  static std::uint64_t now() { return changes.load(std::memory_order_acquire); }

  /// Counts a message of so many items. Returns its row.
  trace::Row& count(std::int64_t items) const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(items) * item_bytes_;
    trace::add_message(*row_, bytes, bytes);
    return *row_;
  }

 private:
  static constexpr int kept_bits = 4;

  /// Sizes that differ by a small factor share the line of a range.
  static std::int64_t size_class(std::int64_t count) {
    return std::bit_width(static_cast<std::uint64_t>(count)) / 4;
  }
  static CachedDecision& at(const Key& key, std::int64_t size) {
    const std::uint64_t mixed = static_cast<std::uint64_t>(size) * 31 +
                                static_cast<std::uint64_t>(key.peer) * 17 +
                                static_cast<std::uint64_t>(key.op);
    return of_thread_[mixed * 0x9E3779B97F4A7C15u >> (64 - kept_bits)];
  }
  bool holds_for(const Key& key, std::uint64_t now) const {
    return left_ > 0 && key.count >= least_ && key.count <= most_ && peer_ == key.peer &&
           op_ == key.op && type_ == key.type && comm_ == key.comm && changes_ == now;
  }
  bool use();

  std::int64_t least_, most_;
  std::uintptr_t type_;
  std::uintptr_t comm_;
  std::uint64_t changes_;
  trace::Row* row_;
  std::uint32_t item_bytes_;
  int peer_;
  std::uint32_t left_;
  trace::Op op_;
  bool is_of_host_;

  /// Without constructors: reading it costs no look whether it has been made.
  static constinit thread_local std::array<CachedDecision, 1 << kept_bits> of_thread_;
};
static_assert(sizeof(CachedDecision) == 64);

}  // namespace mpress::engine
