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

#if defined(MPICH_VERSION)
template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(find_symbol(name));
}
#endif

}  // namespace

void Peek::open(bool threaded) {
  threaded_ = threaded;
#if defined(OPEN_MPI)
  way_ = Way::get_status;
#else
  way_ = threaded ? Way::none : Way::silenced;
#endif
#if defined(MPICH_VERSION)
  find(request_is_complete_, "PMPIX_Request_is_complete");
  find(stream_progress_, "PMPIX_Stream_progress");
  if (request_is_complete_ && stream_progress_) way_ = Way::own_calls;
#endif
}

bool Peek::is_complete_already(MPI_Request request) const {
#if defined(MPICH_VERSION)
  if (way_ == Way::own_calls) return request_is_complete_(request);
#endif
  return is_complete(request);
}

bool Peek::is_complete(MPI_Request request) const {
#if defined(MPICH_VERSION)
  if (way_ == Way::own_calls) {
    constexpr int any_stream = 0x3c000000;  // MPIX_STREAM_NULL
    if (request_is_complete_(request)) return true;
    if (in_progress_hook()) return false;  // MPI is at it, and must not be entered again
    stream_progress_(any_stream);
    return request_is_complete_(request);
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
#if defined(MPICH_VERSION)
  if (in_progress_hook() && *request != MPI_REQUEST_NULL) {
    // What has the hook has this call.
    static const auto is_complete =
        reinterpret_cast<int (*)(MPI_Request)>(find_symbol("PMPIX_Request_is_complete"));
    *complete = 0;
    if (is_complete && !is_complete(*request)) return MPI_SUCCESS;
  }
#endif
  const HeldError error;
  const int code = error.code(calls().Test(request, complete, status));
  if (is_raised) *is_raised = code != MPI_SUCCESS && !error.is_held();
  return code;
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
