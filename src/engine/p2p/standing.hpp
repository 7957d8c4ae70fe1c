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
    trace::Op op;
    int peer;  ///< the rank that the call names
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Count count;
  };

  /// As many as there are.
  static constexpr std::uint32_t always = UINT32_MAX;
  /// Of what is decided by what the policy learns: so many, and then it is asked again. With that
  /// one their number is none that programs repeat messages in.
  static constexpr std::uint32_t some = 16;

  /// What stands for another message of this kind, which counts as one of them; null: nothing. It
  /// is there until the thread's next call of MPI's.
  static const Standing* find(const Kind& kind) {
    Standing& one = at(kind);
    return one.left_ > 0 && one.is_of(kind) && one.changes_ == now() && one.use() ? &one : nullptr;
  }

  struct Decision {
    std::uint32_t left;   ///< for at most so many messages
    std::uint64_t bytes;  ///< of each
    trace::Row* row;      ///< where the last one was counted
    bool on_host_alone;   ///< as long as the process uses no GPU
  };

  /// Such messages go as the last one did, which was decided about when now() was `changes`.
  static void keep(const Kind& kind, const Decision& decision, std::uint64_t changes);

  /// What undoes decisions has happened so many times; see core/changes.hpp.
  static std::uint64_t now() { return changes.load(std::memory_order_acquire); }

  /// Where the messages are counted.
  trace::Row& row() const { return *row_; }

  void count() const { trace::add_message(*row_, bytes_, bytes_); }

 private:
  static constexpr int kept_bits = 4;

  static Standing& at(const Kind& kind) {
    const std::uint64_t mixed = static_cast<std::uint64_t>(kind.count) * 31 +
                                static_cast<std::uint64_t>(kind.peer) * 17 +
                                static_cast<std::uint64_t>(kind.op);
    return of_thread_[mixed * 0x9E3779B97F4A7C15u >> (64 - kept_bits)];
  }
  bool is_of(const Kind& kind) const {
    return count_ == kind.count && peer_ == kind.peer && op_ == kind.op &&
           type_ == mpi::handle_bits(kind.type) && comm_ == mpi::handle_bits(kind.comm);
  }
  bool use();

  MPI_Count count_;
  std::uintptr_t type_;
  std::uintptr_t comm_;
  std::uint64_t changes_;
  std::uint64_t bytes_;
  trace::Row* row_;
  int peer_;
  std::uint32_t left_;
  trace::Op op_;
  bool on_host_alone_;

  /// Without constructors: reading it costs no look whether it has been made.
  static constinit thread_local std::array<Standing, 1 << kept_bits> of_thread_;
};

}  // namespace mpress::engine
