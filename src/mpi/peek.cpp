#include "mpi/peek.hpp"

#include <optional>

#include "mpi/calls/counted.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/progress_hook.hpp"

namespace mpress::mpi {
namespace {

/// While it lives, errors that belong to no communicator of the program's return. MPICH raises them
/// on MPI_COMM_SELF if that has a handler of its own, else on MPI_COMM_WORLD; giving it one would
/// change that for good, so the default is left alone.
class Silence {
 public:
  Silence() {
    silence(world_);
    silence(self_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    restore(self_);
    restore(world_);
  }

 private:
  struct Comm {
    MPI_Comm comm;
    MPI_Errhandler handler;
  };

  void silence(Comm& comm) {
    calls().Comm_get_errhandler(comm.comm, &comm.handler);
    if (is_left_alone(comm)) return;
    calls().Comm_set_errhandler(comm.comm, MPI_ERRORS_RETURN);
  }

  void restore(Comm& comm) {
    if (!is_left_alone(comm)) calls().Comm_set_errhandler(comm.comm, comm.handler);
    calls().Errhandler_free(&comm.handler);
  }

  bool is_left_alone(const Comm& comm) const {
    return &comm == &self_ && comm.handler == MPI_ERRORS_ARE_FATAL;
  }

  Comm world_{MPI_COMM_WORLD, MPI_ERRHANDLER_NULL};
  Comm self_{MPI_COMM_SELF, MPI_ERRHANDLER_NULL};
};

}  // namespace

void Peek::open(bool threaded) {
  threaded_ = threaded;
#if defined(OPEN_MPI)
  way_ = Way::get_status;
#else
  way_ = threaded ? Way::none : Way::silenced;
#endif
#if defined(MPICH_VERSION)
  if (calls().Request_is_complete && calls().Stream_progress) way_ = Way::own_calls;
#endif
}

bool Peek::is_complete_already(MPI_Request request) const {
  if (way_ == Way::own_calls) return calls().Request_is_complete(request);
  return is_complete(request);
}

bool Peek::is_complete(MPI_Request request) const {
#if defined(MPICH_VERSION)
  if (way_ == Way::own_calls) {
    constexpr int any_stream = 0x3c000000;  // MPIX_STREAM_NULL
    if (calls().Request_is_complete(request)) return true;
    if (in_progress_hook()) return false;  // MPI is at it, and must not be entered again
    calls().Stream_progress(any_stream);
    return calls().Request_is_complete(request);
  }
#endif
  const HeldError error;
  std::optional<Silence> silence;
  if (way_ == Way::silenced) silence.emplace();
  int complete = 0;
  return calls().Request_get_status(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
         complete;
}

int test(MPI_Request* request, int* complete, MPI_Status* status, bool* is_raised) {
  const HeldError error;
  const int code = test(request, complete, status, error);
  if (is_raised) *is_raised = code != MPI_SUCCESS && !error.is_held();
  return code;
}

int test(MPI_Request* request, int* complete, MPI_Status* status, const HeldError& error) {
  const auto is_complete = calls().Request_is_complete;  // what has a hook has this call
  if (is_complete && in_progress_hook() && *request != MPI_REQUEST_NULL) {
    *complete = 0;
    if (!is_complete(*request)) return MPI_SUCCESS;
  }
  return error.code(calls().Test(request, complete, status));
}

int Peek::status(MPI_Request request, MPI_Status& status) const {
  const HeldError error;
  std::optional<Silence> silence;
  if (way_ != Way::get_status && !threaded_) silence.emplace();
  int complete = 0;
  return error.code(calls().Request_get_status(request, &complete, &status));
}

bool Peek::may_have(MPI_Request request, std::size_t bytes) const {
  const HeldError error;
  std::optional<Silence> silence;
  if (way_ != Way::get_status) {
    if (threaded_ || in_progress_hook()) return true;
    silence.emplace();
  }
  int complete = 0;
  MPI_Status status;
  const int code = calls().Request_get_status(request, &complete, &status);
  return code != MPI_SUCCESS || !complete ||
         static_cast<std::size_t>(counted::bytes_of(status)) == bytes;
}

}  // namespace mpress::mpi
