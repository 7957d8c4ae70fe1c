#include "engine/request/request_calls.hpp"

#include <utility>

#include "engine/job.hpp"
#include "engine/request/finished_request.hpp"

namespace mpress::engine {

int request_free(Job& job, MPI_Request* request) {
  Pending* entry = job.requests.find(*request);
  if (!entry) return mpi::calls().Request_free(request);
  std::unique_ptr<Pending> pending = job.requests.remove(entry);
  if (pending->replaced()) {
    const MPI_Request stand_in = std::exchange(pending->stand_in, MPI_REQUEST_NULL);
    if (!pending->collect) pending->receive.reset();  // what stands in for it has delivered
    job.orphans.adopt(stand_in, std::move(pending));
    return mpi::calls().Request_free(request);
  }
  const bool needs_end = pending->active && (pending->receive || pending->frame || pending->staged);
  if (!needs_end) return mpi::calls().Request_free(request);
  job.orphans.adopt(std::exchange(*request, MPI_REQUEST_NULL), std::move(pending));
  return MPI_SUCCESS;
}

int cancel(Job& job, MPI_Request* request) {
  Pending* entry = job.requests.find(*request);
  if (entry && entry->offered) {
    return entry->send_half != MPI_REQUEST_NULL ? mpi::calls().Cancel(&entry->send_half)
                                                : MPI_SUCCESS;
  }
  const bool replaced = entry && entry->replaced();
  return mpi::calls().Cancel(replaced ? &entry->stand_in : request);
}

int request_get_status(Job& job, MPI_Request request, int* flag, MPI_Status* given) {
  Pending* entry = job.requests.find(request);
  if (!entry) return mpi::calls().Request_get_status(request, flag, given);
  *flag = 0;
  if (entry->may_be_late(job) && !entry->is_ready(job, request)) return MPI_SUCCESS;
  const bool replaced = entry->replaced();
  MPI_Status own;
  MPI_Status* status = given == MPI_STATUS_IGNORE ? &own : given;
  const int code =
      mpi::calls().Request_get_status(replaced ? entry->stand_in : request, flag, status);
  if (code != MPI_SUCCESS || !*flag || !entry->active) return code;
  if (entry->staged) return entry->staged->conclude(job);
  if (!entry->receive) return code;
  const int delivered = entry->receive->deliver(job, *status);
  return entry->receive->must_raise(delivered) ? entry->receive->comm()->raise(delivered)
                                               : delivered;
}

int look(Job& job, MPI_Request request, bool* active, int* flag, MPI_Status* status) {
  const Pending* entry = job.requests.find(request);
  if (entry) {
    *active = entry->active;
    *flag = 0;
    return *active ? request_get_status(job, request, flag, status) : MPI_SUCCESS;
  }
  int index = MPI_UNDEFINED;
  const int code = mpi::calls().Request_get_status_any(1, &request, &index, flag, status);
  *active = code != MPI_SUCCESS || !*flag || index != MPI_UNDEFINED;
  return code;
}

}  // namespace mpress::engine
