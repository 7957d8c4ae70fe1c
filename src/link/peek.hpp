// Looking at a request of MPI's: is it complete? It stays as it is, whatever came of it.
//
// MPI_Request_get_status does that in Open MPI. In MPICH it raises what went wrong with the
// request, and on no communicator of the request's, so that a truncated message ends the job
// before the program's own call could report it. There MPIX_Request_is_complete serves (MPICH
// 4.3), or else, while one thread at a time calls MPI, errors are silenced while one looks.
#pragma once

#include "link/mpi.hpp"

namespace mpress::link {

class Peek {
 public:
  /// Finds out how this MPI lets one look. To be called in MPI_Init, before the program goes on.
  /// `threaded`: under MPI_THREAD_MULTIPLE.
  void open(bool threaded);

  /// Is there a way?
  bool is_possible() const { return way_ != Way::none; }

  /// Is `request`, not persistent, complete? Lets MPI proceed. Raises nothing.
  bool is_complete(MPI_Request request) const;

 private:
  enum class Way { none, get_status, is_complete, silenced };
  using IsComplete = int (*)(MPI_Request);

  Way way_ = Way::none;
  IsComplete is_complete_ = nullptr;
};

}  // namespace mpress::link
