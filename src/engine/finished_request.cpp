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
  copy_status(outcome.status, *status);
  return outcome.code;
}

int release(void* state) {
  delete static_cast<Outcome*>(state);
  return MPI_SUCCESS;
}

int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

void copy_status(const MPI_Status& from, MPI_Status& to) {
  const link::MpiCalls& mpi = link::mpi();
  MPI_Count bytes = 0;
  mpi.Get_elements_x(&from, MPI_BYTE, &bytes);
  mpi.Status_set_elements_x(&to, MPI_BYTE, bytes);
  mpi.Status_set_cancelled(&to, 0);
  to.MPI_SOURCE = from.MPI_SOURCE;
  to.MPI_TAG = from.MPI_TAG;
}

int make_finished_request(const MPI_Status& status, int code, MPI_Request* request) {
  auto outcome = std::make_unique<Outcome>(Outcome{status, code});
  const int made = link::mpi().Grequest_start(query, release, cancel, outcome.get(), request);
  if (made != MPI_SUCCESS) return made;
  outcome.release();
  return link::mpi().Grequest_complete(*request);
}

}  // namespace mpress::engine
