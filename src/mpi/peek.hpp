// Looking at a request of MPI's: is it complete? It stays as it is, whatever came of it.
//
// MPI_Request_get_status does that in Open MPI. In MPICH it raises what went wrong with the
// request, and on no communicator of the request's, so that a truncated message would end the job
// before the program's own call could report it. There MPIX_Request_is_complete tells no more than
// its name says; it lets nothing proceed, which MPIX_Stream_progress does. Older MPICHs and
// the library for the standard ABI lack them: those are asked for the status while errors are
// silenced, which only works while one thread at a time calls MPI.
#pragma once

#include <cstddef>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

class HeldError;

class Peek {
 public:
  /// `threaded`: under MPI_THREAD_MULTIPLE.
  void open(bool threaded);

  /// Is there a way?
  bool is_possible() const { return way_ != Way::none; }

  /// Is `request`, not persistent, complete? Lets MPI proceed. Raises nothing.
  bool is_complete(MPI_Request request) const;

  /// The same as things are: MPI proceeds only where there is no other way to look.
  bool is_complete_already(MPI_Request request) const;

  /// False where `request`, not persistent, is not complete as things are, and MPI tells that
  /// without proceeding, in less time than test() takes.
  bool may_be_complete(MPI_Request request) const {
    return way_ != Way::own_calls || calls().Request_is_complete(request);
  }

  /// What a complete request, not persistent, will complete with. Returns MPI's error code; raises
  /// nothing, but where threads call MPI.
  int status(MPI_Request request, MPI_Status& status) const;

  /// May the message of a complete receive have `bytes` bytes? Yes, too, where nothing tells.
  /// Raises nothing.
  bool may_have(MPI_Request request, std::size_t bytes) const;

 private:
  enum class Way { none, get_status, silenced, own_calls };
  Way way_ = Way::none;
  bool threaded_ = false;
};

/// MPI_Test for whoever lets an operation proceed, from within MPI's progress engine, too
/// (mpi/progress_hook.hpp), where it lets nothing proceed. No handler of the program's runs: an
/// error is the operation's, and still to be raised unless `is_raised` says that MPI did so.
int test(MPI_Request* request, int* complete, MPI_Status* status, bool* is_raised = nullptr);

/// The same for whoever holds errors already: that of MPI stays in `error`.
int test(MPI_Request* request, int* complete, MPI_Status* status, const HeldError& error);

}  // namespace mpress::mpi
