#include "engine/request/pending.hpp"

#include "engine/job.hpp"

namespace mpress::engine {

bool Pending::is_ready(Job& job, MPI_Request request, bool waits_for_more) {
  if (!is_sent(job, waits_for_more)) return false;
  if (offered) {
    if (collect) collect->finish();
    collect.reset();
    return true;
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

/// The half of it that is a send. One that is offered is taken care of first: its receiver may have
/// been found by now, and its header may wait for one.
bool Pending::is_sent(Job& job, bool waits_for_more) {
  if (offered && !offered->advance(job, *row, waits_for_more)) return false;
  if (send_half == MPI_REQUEST_NULL) return true;
  int sent = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&send_half, &sent, &status);
  if (!offered) return sent != 0;
  if (code != MPI_SUCCESS) {
    send_code = code;
    send_half = MPI_REQUEST_NULL;
    return true;
  }
  if (sent) {
    int cancelled = 0;
    mpi::calls().Test_cancelled(&status, &cancelled);
    mpi::calls().Status_set_cancelled(&collect->status(), cancelled);
  }
  return sent != 0;
}

void Pending::recall_chunks(Job& job, const MPI_Status& status) const {
  if (chunked_message == no_message) return;
  int cancelled = 0;
  mpi::calls().Test_cancelled(&status, &cancelled);
  if (cancelled) job.chunks.cancel(job, chunked_message);
}

/// MPICH ends a persistent receive that MPI_Request_get_status finds complete, so those cannot be
/// looked at: MPI completes them, and a stand-in takes over.
bool Pending::collect_persistent(Job& job, MPI_Request request) {
  int arrived = 0;
  MPI_Status status;
  const int result = mpi::calls().Test(&request, &arrived, &status);
  if (result == MPI_SUCCESS && !arrived) return false;
  collect.emplace();
  const int opened = collect->open(status, &stand_in);
  if (opened != MPI_SUCCESS) mpi::fatal("MPI refused a generalized request");
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
