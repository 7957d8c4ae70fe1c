// Requests for receives whose message MPI has delivered already: generalized requests, so that
// every call of MPI takes them.
#pragma once

#include "mpi/calls/calls.hpp"

namespace mpress::engine {

/// Makes a request that completes with `status` (its fields and count). It succeeds always: MPICH
/// tells errors of generalized requests as MPI_ERR_OTHER or not at all, so what failed is kept in
/// the MpiReceive (mpi/messages/mpi_receive.hpp), and the request's entry in the table.
int make_finished_request(const MPI_Status& status, MPI_Request* request);

/// The same for a receive that is not over yet. Refers to a request of MPI's, which the program
/// holds and may free only after finish().
class OpenRequest {
 public:
  /// Makes the request. `status` is what is known by now.
  int open(const MPI_Status& status, MPI_Request* request);

  /// The same of what brings no message: its status is empty. Ends the process where MPI refuses.
  void open_empty(MPI_Request* request);

  /// What the request will complete with.
  MPI_Status& status() { return outcome_->status; }

  /// Completes it. Returns MPI's error code.
  int finish();

 private:
  struct Outcome {
    MPI_Status status;
  };
  static int query(void* state, MPI_Status* status);
  static int release(void* state);

  Outcome* outcome_ = nullptr;  ///< MPI's, which releases it with the request
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// Copies source, tag, count and whether it was cancelled; MPI_ERROR stays.
void copy_status(const MPI_Status& from, MPI_Status& to);

}  // namespace mpress::engine
