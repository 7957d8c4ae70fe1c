#include "link/peek.hpp"

namespace mpress::link {
namespace {

/// While it lives, errors that belong to no communicator in particular return. Those of MPI are
/// raised on MPI_COMM_WORLD or, since MPI 4, on MPI_COMM_SELF.
class Silence {
 public:
  Silence() {
    for (Comm& comm : comms_) {
      mpi().Comm_get_errhandler(comm.comm, &comm.handler);
      mpi().Comm_set_errhandler(comm.comm, MPI_ERRORS_RETURN);
    }
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    for (Comm& comm : comms_) {
      mpi().Comm_set_errhandler(comm.comm, comm.handler);
      mpi().Errhandler_free(&comm.handler);
    }
  }

 private:
  struct Comm {
    MPI_Comm comm;
    MPI_Errhandler handler;
  };
  Comm comms_[2] = {{MPI_COMM_WORLD, MPI_ERRHANDLER_NULL}, {MPI_COMM_SELF, MPI_ERRHANDLER_NULL}};
};

/// Looks at a receive from ourselves that was truncated: does MPI raise that?
bool get_status_raises() {
  const Silence silence;
  MPI_Comm self = MPI_COMM_NULL;
  if (mpi().Comm_split(MPI_COMM_SELF, 0, 0, &self) != MPI_SUCCESS) return true;
  mpi().Comm_set_errhandler(self, MPI_ERRORS_RETURN);
  const char sent[2] = {};
  char received = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  mpi().Irecv(&received, 1, MPI_BYTE, 0, 0, self, &requests[0]);
  mpi().Isend(sent, 2, MPI_BYTE, 0, 0, self, &requests[1]);
  int code = MPI_SUCCESS;
  for (int complete = 0; !complete && code == MPI_SUCCESS;) {
    code = mpi().Request_get_status(requests[0], &complete, MPI_STATUS_IGNORE);
  }
  for (MPI_Request& request : requests) mpi().Wait(&request, MPI_STATUS_IGNORE);
  mpi().Comm_free(&self);
  return code != MPI_SUCCESS;
}

}  // namespace

void Peek::open(bool threaded) {
  is_complete_ = reinterpret_cast<IsComplete>(find_symbol("PMPIX_Request_is_complete"));
  if (!get_status_raises()) {
    way_ = Way::get_status;
  } else if (is_complete_) {
    way_ = Way::is_complete;
  } else {
    way_ = threaded ? Way::none : Way::silenced;
  }
}

bool Peek::is_complete(MPI_Request request) const {
  if (way_ == Way::is_complete) {
    if (is_complete_(request)) return true;
    int none = 0;
    // Lets MPI proceed; a probe of MPI_COMM_SELF would not.
    mpi().Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &none, MPI_STATUS_IGNORE);
    return is_complete_(request);
  }
  int complete = 0;
  if (way_ == Way::silenced) {
    const Silence silence;
    return mpi().Request_get_status(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
           complete;
  }
  return mpi().Request_get_status(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || complete;
}

}  // namespace mpress::link
