#include "mpi/requests/request_calls.hpp"

#include <utility>

#include "mpi/job/job.hpp"
#include "mpi/progress_hook.hpp"
#include "mpi/requests/freed.hpp"

namespace mpress::engine {

int request_free(Job& job, MPI_Request* request) {
  Request* found = job.requests.find(*request);
  if (!found) return mpi::calls().Request_free(request);
  std::shared_ptr<Request> entry = job.requests.remove(found);
  if (!entry->is_active()) return mpi::calls().Request_free(request);
  const bool replaced = entry->replaced();
  if (!replaced && !entry->outlives_its_request()) return mpi::calls().Request_free(request);
  complete_freed(job, replaced ? MPI_REQUEST_NULL : std::exchange(*request, MPI_REQUEST_NULL),
                 std::move(entry));
  return replaced ? mpi::calls().Request_free(request) : MPI_SUCCESS;
}

int cancel(Job& job, MPI_Request* request) {
  Request* entry = job.requests.find(*request);
  return entry ? entry->cancel(request) : mpi::calls().Cancel(request);
}

int request_get_status(Job& job, MPI_Request request, int* flag, MPI_Status* given) {
  Request* entry = job.requests.find(request);
  if (!entry) return mpi::calls().Request_get_status(request, flag, given);
  *flag = 0;
  const Request::Look look(*entry);
  if (!look) return MPI_SUCCESS;
  entry->follow(job);
  entry->await(true);
  job.progress.advance();
  entry->await(false);
  if (!entry->is_ready()) return MPI_SUCCESS;
  MPI_Status own;
  MPI_Status* status = given == MPI_STATUS_IGNORE ? &own : given;
  const int code = mpi::calls().Request_get_status(entry->replaced() ? entry->stand_in() : request,
                                                   flag, status);
  if (code != MPI_SUCCESS || !*flag || !entry->is_active()) return code;
  const Ending ending = entry->look(job, *status);
  return ending.raise_on ? ending.raise_on->raise(ending.code) : ending.code;
}

bool is_complete(Job& job, MPI_Request request) {
  const mpi::HookRules rules;
  Request* const entry = job.requests.find_claimed_too(request);
  if (!entry) return job.peek.is_complete_already(request);
  const Request::Look look(*entry);
  if (!look) return false;
  entry->follow(job);
  if (!entry->is_ready()) {
    entry->await(true);
    job.progress.advance_one(*entry);
    entry->await(false);
  }
  if (!entry->is_ready()) return false;
  if (!entry->is_active()) return true;
  const Progress::Pause pause;
  return entry->settle(job, entry->replaced() ? entry->stand_in() : request);
}

int look(Job& job, MPI_Request request, bool* active, int* flag, MPI_Status* status) {
  const Request* entry = job.requests.find(request);
  if (entry) {
    *active = entry->is_active();
    *flag = 0;
    return *active ? request_get_status(job, request, flag, status) : MPI_SUCCESS;
  }
  int index = MPI_UNDEFINED;
  const int code = mpi::calls().Request_get_status_any(1, &request, &index, flag, status);
  *active = code != MPI_SUCCESS || !*flag || index != MPI_UNDEFINED;
  return code;
}

}  // namespace mpress::engine
