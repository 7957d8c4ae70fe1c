// The program's error handlers, which run when nothing is left of the call that they belong to.
//
// MPI calls a handler from inside its own call, beneath frames of mpress's, and may hold a lock:
// MPICH holds the communicator's under MPI_THREAD_MULTIPLE. Handlers throw exceptions, jump away
// and call MPI. So MPI gets functions of mpress's in their place, which note the error, and the
// program's call runs the handler once all beneath it has returned.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

template <typename Object>
using ErrorHandler = void(Object*, int*, ...);

/// The function that MPI gets in the place of a handler; the handler itself where none is left.
ErrorHandler<MPI_Comm>* noting_on_comm(ErrorHandler<MPI_Comm>* handler);
ErrorHandler<MPI_Win>* noting_on_win(ErrorHandler<MPI_Win>* handler);
ErrorHandler<MPI_File>* noting_on_file(ErrorHandler<MPI_File>* handler);

/// Has the next call of the program's, of any thread, run this last: the error belongs to no call.
void raise_later(std::function<void()> raise);

/// Runs at once what raise_later() was given, if anything.
void raise_now();

/// The errors of this thread that wait for the end of a scope: one each, as a call raises one.
class ErrorNotes {
 public:
  struct Note {
    unsigned depth;  ///< of scopes
    int code;
    std::function<void()> handle;
  };

  static void enter() { ++here.depth; }

  /// A note that is left passes to the scope around this one; where there is none, it is raised
  /// later.
  static void leave() {
    --here.depth;
    if (here.notes) pass_on();
  }

  /// The first of a scope counts. False outside of all scopes.
  static bool add(int code, std::function<void()> handle);

  /// That of the innermost scope, or null.
  static const Note* innermost() { return here.notes ? last_if_innermost() : nullptr; }

  /// Takes that of the innermost scope; without a handler, if there is none.
  static Note take();

  static void postpone(Note note);

  /// That of the innermost scope, if there is one, belongs to no call.
  static void postpone_innermost() {
    if (innermost()) postpone(take());
  }

 private:
  friend void raise_later(std::function<void()> raise);
  friend void raise_now();
  friend class ProgramCall;
  static const Note* last_if_innermost();
  static void pass_on();
  static std::function<void()> take_later();

  struct Here {
    unsigned depth;
    std::vector<Note>* notes;  ///< null where there is none
  };
  static inline constinit thread_local Here here{0, nullptr};
  static inline constinit std::atomic<bool> has_later{false};
};

/// A call of the program's. One that a callback makes may be inside it.
class ProgramCall {
 public:
  ProgramCall() { ++here_.depth; }
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;
  ~ProgramCall() {
    if (!is_over_) ErrorNotes::leave();
  }

  /// Nothing is left to do: runs the handler of its error, if there is one, whose exceptions pass.
  void end() {
    is_over_ = true;
    if (here_.notes || ErrorNotes::has_later.load(std::memory_order_relaxed)) {
      return end_with_handlers();
    }
    --here_.depth;
  }

 private:
  static void end_with_handlers();

  ErrorNotes::Here& here_ = ErrorNotes::here;  ///< each look at the thread's costs a call
  bool is_over_ = false;
};

/// An error that MPI raises in its scope is the owner's, to be raised by the call that it belongs
/// to.
class HeldError {
 public:
  HeldError() { ErrorNotes::enter(); }
  HeldError(const HeldError&) = delete;
  HeldError& operator=(const HeldError&) = delete;
  ~HeldError() {
    if (is_held()) ErrorNotes::take();
    ErrorNotes::leave();
  }

  /// Has a handler of the program's still to run?
  bool is_held() const { return ErrorNotes::innermost() != nullptr; }

  /// The error code of a call of MPI's that returned `returned`: MPICH's return success once they
  /// have called a handler.
  int code(int returned) const { return is_held() ? ErrorNotes::innermost()->code : returned; }

  /// Of an error that belongs to no call.
  void raise_later() { ErrorNotes::postpone_innermost(); }
};

/// A scope without an object: an error that MPI raises between the two belongs to no call, and is
/// raised later. Of rounds of progress, whose errors are the operations' own.
inline void begin_scope_of_no_call() { ErrorNotes::enter(); }
inline void end_scope_of_no_call() {
  ErrorNotes::postpone_innermost();
  ErrorNotes::leave();
}

}  // namespace mpress::mpi
