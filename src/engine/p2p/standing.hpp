// What was decided of a message that MPI gets as it is holds for those like it that follow.
//
// A driver's call evicts what mpress has in the processor's caches, and under an MPI that takes
// memory of devices there is one in each message. To read again all that a decision rests on takes
// longer than the decision. So each thread keeps its last ones, a cache line each.
//
// Only such decisions stand as do not depend on where the program's buffer lies: where it does not
// matter, where no GPU is in use, or, as an MPI can take both, where memory of the host and of a
// device go the same way. What was seen of the place then serves the statistics alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/changes.hpp"
#include "mpi/calls/calls.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// A decision, of the calling thread's.
class alignas(64) Standing {
 public:
  /// Messages that are decided alike.
  struct Kind {
    trace::Direction direction;  ///< of an exchange there are both
    trace::Op op;
    int peer;  ///< the rank that the call names
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Count count;
  };

  /// As many as there are.
  static constexpr std::uint32_t always = UINT32_MAX;
  /// Of what is decided by what the policy learns, and of what comes: so many, and then it is asked
  /// again. With that one their number is none that programs repeat messages in.
  static constexpr std::uint32_t some = 16;

  /// What stands for another message of this kind, which counts as one of them; null: nothing. It
  /// is there until the thread's next call of MPI's.
  static const Standing* find(const Kind& kind) {
    Standing& one = at(kind);
    return one.left_ > 0 && one.is_of(kind) && one.changes_ == now() && one.use() ? &one : nullptr;
  }

  struct Decision {
    std::uint32_t left;  ///< for at most so many messages
    std::uint64_t fact;  ///< of those sent the bytes of each; of those received when one was timed
    trace::Row* row;     ///< where the last one was counted
    bool on_host_alone;  ///< as long as the process uses no GPU
  };

  /// Such messages go as the last one did, which was decided about when now() was `changes`.
  static void keep(const Kind& kind, const Decision& decision, std::uint64_t changes);

  /// What undoes decisions has happened so many times; see core/changes.hpp.
  static std::uint64_t now() { return changes.load(std::memory_order_acquire); }

  struct Uses {
    std::uint32_t count;
    std::uint64_t since_ns;  ///< when one was timed before them
  };

  /// Ends the decision about this kind. The messages that went by it; none, too, where another kind
  /// took its place.
  static Uses take_uses(const Kind& kind) {
    Standing& one = at(kind);
    if (!one.is_of(kind) || one.kept_ == always) return {0, 0};
    const Uses uses{one.kept_ - one.left_, one.fact_};
    one.kept_ = one.left_ = 0;
    return uses;
  }

  /// A message of this kind came by its decision that was none of those: for some more no decision
  /// stands, so that they are timed.
  static void interrupt(const Kind& kind) {
    Standing& one = at(kind);
    if (!one.is_of(kind)) return;
    if (one.kept_ != always) one.kept_ -= one.left_ + 1;
    one.left_ = 0;
    one.decided_anew_ = some;
  }

  /// Whether a message of this kind is among those, and counts it.
  static bool is_decided_anew(const Kind& kind) {
    Standing& one = at(kind);
    if (!one.is_of(kind) || one.decided_anew_ == 0) return false;
    --one.decided_anew_;
    return true;
  }

  /// Where the messages are counted.
  trace::Row& row() const { return *row_; }

  /// Counts a message that is sent.
  void count() const { trace::add_message(*row_, fact_, fact_); }

 private:
  static constexpr int kept_bits = 4;

  static Standing& at(const Kind& kind) {
    const std::uint64_t mixed =
        static_cast<std::uint64_t>(kind.count) * 31 + static_cast<std::uint64_t>(kind.peer) * 17 +
        static_cast<std::uint64_t>(kind.op) * 2 + static_cast<std::uint64_t>(kind.direction);
    return of_thread_[mixed * 0x9E3779B97F4A7C15u >> (64 - kept_bits)];
  }
  bool is_of(const Kind& kind) const {
    return count_ == kind.count && peer_ == kind.peer && op_ == kind.op &&
           direction_ == kind.direction && type_ == mpi::handle_bits(kind.type) &&
           comm_ == mpi::handle_bits(kind.comm);
  }
  bool use();

  MPI_Count count_;
  std::uintptr_t type_;
  std::uintptr_t comm_;
  std::uint64_t changes_;
  std::uint64_t fact_;
  trace::Row* row_;
  int peer_;
  std::uint32_t kept_;  ///< for so many
  std::uint32_t left_;
  trace::Direction direction_;
  trace::Op op_;
  bool on_host_alone_;
  std::uint8_t decided_anew_;  ///< so many more

  /// Without constructors: reading it costs no look whether it has been made.
  static constinit thread_local std::array<Standing, 1 << kept_bits> of_thread_;
};

}  // namespace mpress::engine
