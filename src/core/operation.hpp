// Anything that takes time: a send, a receive, a collective, a call that MPI makes on staging
// buffers.
//
// Each kind has a start of its own, which returns as soon as the operation is under way. From then
// on advance() lets it proceed, by whoever waits for anything (core/progress.hpp), until
// it is over; the kind's own finish gives what came of it to the call that completes it.
#pragma once

#include <atomic>

namespace mpress::engine {

class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  /// Lets it proceed as far as it can. Never waits for another rank or for a device, holds no lock
  /// of mpress while it calls MPI, and raises nothing: an error stays in the operation until the
  /// call that completes it, or is raised later (mpi/error_handlers.hpp) where no call does.
  /// Returns whether it is over. One thread at a time calls it; Progress and the request table see
  /// to that. Not called again once it returned true.
  virtual bool advance() = 0;

  /// Must somebody call advance() for the other ranks to proceed? No, where a device publishes what
  /// is left by itself. Before a call blocks where mpress does not advance, it advances those
  /// operations until none needs the host.
  virtual bool needs_host() const { return true; }

  /// May MPI's progress engine call advance()? Only where it keeps to what mpi/progress_hook.hpp
  /// allows, which MPI_Test of a request that is not complete does not. Always the same answer.
  virtual bool may_run_in_hook() const { return false; }

  /// Set by Progress once advance() has returned true; may be read by any thread.
  bool is_over() const { return over_.load(std::memory_order_acquire); }

 protected:
  /// Is to be started again.
  void renew() { over_.store(false, std::memory_order_relaxed); }

 private:
  friend class Progress;
  std::atomic<bool> over_{false};
};

}  // namespace mpress::engine
