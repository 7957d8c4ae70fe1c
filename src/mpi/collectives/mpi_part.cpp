#include "mpi/collectives/mpi_part.hpp"

#include "mpi/job/job.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {

MpiPart::~MpiPart() {
  if (is_persistent_) mpi::calls().Request_free(&request_);
}

int MpiPart::begin(KeptCall& kept) {
  is_on_programs_ = true;
  int code = staged_.open_all(job_, kept.left());
  if (code == MPI_SUCCESS) code = staged_.fetch(job_);
  if (code == MPI_SUCCESS) code = kept.begin(staged_, kept.left().comm, &request_);
  is_under_way_ = code == MPI_SUCCESS;
  return code;
}

void MpiPart::begin_privately(KeptCall& kept, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) {
    code_ = MPI_ERR_INTERN;
    return;
  }
  code_ = staged_.prepare(job_, kept.left());
  if (code_ == MPI_SUCCESS) code_ = kept.begin(staged_, comm, &request_);
  is_under_way_ = code_ == MPI_SUCCESS;
}

int MpiPart::make(KeptCall& kept) {
  is_on_programs_ = true;
  int code = staged_.open_all(job_, kept.left());
  if (code == MPI_SUCCESS) code = kept.begin(staged_, kept.left().comm, &request_);
  // MPICH may return success, and no request, once a handler of the program's was called.
  if (code == MPI_SUCCESS && request_ == MPI_REQUEST_NULL) code = MPI_ERR_OTHER;
  is_persistent_ = code == MPI_SUCCESS;
  return code;
}

int MpiPart::start() {
  code_ = staged_.fetch(job_);
  if (code_ == MPI_SUCCESS) code_ = mpi::calls().Start(&request_);
  is_under_way_ = code_ == MPI_SUCCESS;
  return code_;
}

bool MpiPart::advance() {
  if (!is_under_way_) return true;
  int is_complete = 0;
  code_ = mpi::test(&request_, &is_complete, MPI_STATUS_IGNORE, &is_raised_);
  is_under_way_ = code_ == MPI_SUCCESS && !is_complete;
  return !is_under_way_;
}

}  // namespace mpress::engine
