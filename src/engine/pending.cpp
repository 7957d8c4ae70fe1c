#include "engine/pending.hpp"

#include "engine/job.hpp"

namespace mpress::engine {

bool Pending::is_ready(Job& job, MPI_Request request) {
  if (send_half != MPI_REQUEST_NULL) {
    int sent = 0;
    link::mpi().Test(&send_half, &sent, MPI_STATUS_IGNORE);
    if (!sent) return false;
  }
  if (!collect) {
    if (!receive->may_come_in_chunks(job)) return true;
    return persistent ? collect_persistent(job, request) : receive->is_all_there(job, request);
  }
  if (!receive->collected(job)) return false;
  receive->deliver(job, collect->status());
  collect->finish();
  collect.reset();
  return true;
}

void Pending::recall_chunks(Job& job, const MPI_Status& status) const {
  if (chunked_message == no_message) return;
  int cancelled = 0;
  link::mpi().Test_cancelled(&status, &cancelled);
  if (cancelled) job.chunks.cancel(job, chunked_message);
}

/// MPICH ends a persistent receive that MPI_Request_get_status finds complete, so those cannot be
/// looked at: MPI completes them, and a stand-in takes over.
bool Pending::collect_persistent(Job& job, MPI_Request request) {
  int arrived = 0;
  MPI_Status status;
  const int result = link::mpi().Test(&request, &arrived, &status);
  if (result == MPI_SUCCESS && !arrived) return false;
  collect.emplace();
  const int opened = collect->open(status, &stand_in);
  if (opened != MPI_SUCCESS) link::fatal("MPI refused a generalized request");
  if (result == MPI_SUCCESS && receive->collects(job, status)) return is_ready(job, stand_in);
  if (result == MPI_SUCCESS) {
    receive->deliver(job, collect->status());
  } else {
    receive->fail(result);
  }
  collect->finish();
  collect.reset();
  return true;
}

}  // namespace mpress::engine
