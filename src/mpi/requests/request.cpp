#include "mpi/requests/request.hpp"

#include "mpi/job/job.hpp"

namespace mpress::engine {

void Request::follow(Job& job) {
  if (is_followed() || !is_active_ || !may_be_late(job)) return;
  if (!is_followed_.exchange(true)) enter(job);
}

bool Request::settle(Job& job, MPI_Request request) {
  return job.peek.is_complete_already(request);
}

void Request::enter(Job& job) { job.progress.add(shared_from_this()); }

}  // namespace mpress::engine
