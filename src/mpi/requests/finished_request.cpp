#include "mpi/requests/finished_request.hpp"

#include <memory>

#include "mpi/calls/counted.hpp"

namespace mpress::engine {
namespace {

int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

/// Where MPI calls for it, `to` is MPI's, which hands its requests from thread to thread by means
/// that a thread sanitizer does not see.
__attribute__((no_sanitize("thread"))) void copy_status(const MPI_Status& from, MPI_Status& to) {
  const mpi::Calls& mpi = mpi::calls();
  mpi.Status_set_elements_x(&to, MPI_BYTE, mpi::counted::bytes_of(from));
  mpi.Status_set_cancelled(&to, mpi::is_cancelled(from));
  to.MPI_SOURCE = from.MPI_SOURCE;
  to.MPI_TAG = from.MPI_TAG;
}

int OpenRequest::query(void* state, MPI_Status* status) {
  const auto& outcome = *static_cast<const Outcome*>(state);
  copy_status(outcome.status, *status);
  return MPI_SUCCESS;
}

int OpenRequest::release(void* state) {
  delete static_cast<Outcome*>(state);
  return MPI_SUCCESS;
}

int OpenRequest::open(const MPI_Status& status, MPI_Request* request) {
  auto outcome = std::make_unique<Outcome>(Outcome{status});
  const int code = mpi::calls().Grequest_start(query, release, cancel, outcome.get(), request);
  if (code != MPI_SUCCESS) return code;
  outcome_ = outcome.release();
  request_ = *request;
  return code;
}

void OpenRequest::open_empty(MPI_Request* request) {
  MPI_Status status{};
  mpi::calls().Status_set_elements_x(&status, MPI_BYTE, 0);
  mpi::calls().Status_set_cancelled(&status, 0);
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  if (open(status, request) != MPI_SUCCESS) mpi::fatal("MPI refused a generalized request");
}

int OpenRequest::finish() { return mpi::calls().Grequest_complete(request_); }

int make_finished_request(const MPI_Status& status, MPI_Request* request) {
  OpenRequest finished;
  const int made = finished.open(status, request);
  return made == MPI_SUCCESS ? finished.finish() : made;
}

}  // namespace mpress::engine
