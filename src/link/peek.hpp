// Looking at a request of MPI's: is it complete? It stays as it is, whatever came of it.
//
// MPI_Request_get_status does that in Open MPI. In MPICH it raises what went wrong with the
// request, and on no communicator of the request's, so that a truncated message would end the job
// before the program's own call could report it. There errors are silenced while one looks, which
// only works while one thread at a time calls MPI.
#pragma once

#include "link/mpi.hpp"

namespace mpress::link {

class Peek {
 public:
  /// `threaded`: under MPI_THREAD_MULTIPLE.
  void open(bool threaded);

  /// Is there a way?
  bool is_possible() const { return way_ != Way::none; }

  /// Is `request`, not persistent, complete? Lets MPI proceed. Raises nothing.
  bool is_complete(MPI_Request request) const;

 private:
  enum class Way { none, get_status, silenced };
  Way way_ = Way::none;
};

}  // namespace mpress::link
