#include "engine/finished_request.hpp"

#include <memory>

namespace mpress::engine {
namespace {

struct Outcome {
  MPI_Status status;
  int code;
};

int query(void* state, MPI_Status* status) {
  const auto& outcome = *static_cast<const Outcome*>(state);
  const link::MpiCalls& mpi = link::mpi();
  MPI_Count bytes = 0;
  mpi.Get_elements_x(&outcome.status, MPI_BYTE, &bytes);
  mpi.Status_set_elements_x(status, MPI_BYTE, bytes);
  mpi.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = outcome.status.MPI_SOURCE;
  status->MPI_TAG = outcome.status.MPI_TAG;
  return outcome.code;
}

int release(void* state) {
  delete static_cast<Outcome*>(state);
  return MPI_SUCCESS;
}

int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

int make_finished_request(const MPI_Status& status, int code, MPI_Request* request) {
  auto outcome = std::make_unique<Outcome>(Outcome{status, code});
  const int made =
      link::mpi().Grequest_start(query, release, cancel, outcome.get(), request);
  if (made != MPI_SUCCESS) return made;
  outcome.release();
  return link::mpi().Grequest_complete(*request);
}

}  // namespace mpress::engine
