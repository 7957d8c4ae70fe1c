// The link by MPI: chunks on the private communicator of the world's context, under the tag that a
// message's route names, in order between two ranks. No send waits for a chunk to be received.
//
// It knows no codec and no element. What goes out is handed over with its memory; what comes in is
// received where the caller says.
#pragma once

#include <atomic>
#include <cstdint>

#include "link/mpi/outbox.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"

namespace mpress::link {

class MpiLink {
 public:
  /// `comm`: private, of the ranks of MPI_COMM_WORLD in their order, and returns errors; it stays
  /// the caller's. The link's messages have tags from 0 to `tags`, this not included.
  void open(MPI_Comm comm, std::uint64_t tags);

  MPI_Comm comm() const { return comm_; }

  /// The next message's number, and its tag.
  std::uint64_t next_message() { return next_message_.fetch_add(1, std::memory_order_relaxed); }
  int tag_of(std::uint64_t message) const { return static_cast<int>(message % tags_); }

  /// Counts a chunk that has come.
  void received() { received_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t received_chunks() const { return received_.load(std::memory_order_relaxed); }

  /// Has any come?
  bool is_used() const { return received_chunks() > 0; }

  /// Receives and forgets a chunk that nobody asks for any more; false where there is none.
  bool drain_one(memory::BufferPool& pool);

  /// What the others of a process do at its end.
  class Parting {
   public:
    /// Lets everything proceed that is under way.
    virtual void proceed() = 0;
    /// Is nothing of this process's under way? `pending()` changes with every step.
    virtual bool is_idle() const = 0;
    virtual std::uint64_t pending() const = 0;
    /// All that was sent has come: what ranks share by other links is closed now, and freed when
    /// all have done so.
    virtual void close_others() = 0;
    /// A rank whose process has ended; negative where none is known to.
    virtual int find_ended() const = 0;

   protected:
    ~Parting() = default;
  };

  /// Collective over MPI_COMM_WORLD: returns when all that was sent has been received, or drained
  /// where its header never reached a receive of the program's. False, and a sentence is said,
  /// where a rank has ended without that, or nothing has moved for long.
  bool say_farewell(Parting& parting);

  Outbox outbox;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::uint64_t tags_ = 1;
  std::atomic<std::uint64_t> next_message_{0};
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace mpress::link
