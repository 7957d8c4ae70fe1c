// MPI_Wait and MPI_Test in all their forms, and the calls on single requests.

#include "mpi/requests/completion.hpp"

#include "mpi/calls/calls.hpp"
#include "mpi/job/job.hpp"
#include "mpi/requests/request_calls.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

/// The job, where some request is watched or some operation is under way: most calls need not look
/// any further.
engine::Job* watching(engine::Job* job) {
  return job && !(job->requests.empty() && job->progress.idle()) ? job : nullptr;
}
engine::Job* watching_job() { return watching(engine::enter_call()); }

}  // namespace

MPRESS_EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  engine::Job* job = watching_job();
  return job ? engine::wait(*job, request, status) : mpi::calls().Wait(request, status);
}

MPRESS_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  engine::Job* job = watching_job();
  return job ? engine::waitall(*job, count, requests, statuses)
             : mpi::calls().Waitall(count, requests, statuses);
}

MPRESS_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  engine::Job* job = watching_job();
  return job ? engine::waitany(*job, count, requests, index, status)
             : mpi::calls().Waitany(count, requests, index, status);
}

MPRESS_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                               MPI_Status statuses[]) {
  engine::Job* job = watching_job();
  return job ? engine::waitsome(*job, count, requests, done, indices, statuses)
             : mpi::calls().Waitsome(count, requests, done, indices, statuses);
}

MPRESS_EXPORT int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  engine::Job* job = watching_job();
  return job ? engine::test(*job, request, flag, status) : mpi::calls().Test(request, flag, status);
}

MPRESS_EXPORT int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  engine::Job* job = watching_job();
  return job ? engine::testall(*job, count, requests, flag, statuses)
             : mpi::calls().Testall(count, requests, flag, statuses);
}

MPRESS_EXPORT int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag,
                              MPI_Status* status) {
  engine::Job* job = watching_job();
  return job ? engine::testany(*job, count, requests, index, flag, status)
             : mpi::calls().Testany(count, requests, index, flag, status);
}

MPRESS_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                               MPI_Status statuses[]) {
  engine::Job* job = watching_job();
  return job ? engine::testsome(*job, count, requests, done, indices, statuses)
             : mpi::calls().Testsome(count, requests, done, indices, statuses);
}

MPRESS_EXPORT int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  engine::Job* job = watching_job();
  return job ? engine::request_get_status(*job, request, flag, status)
             : mpi::calls().Request_get_status(request, flag, status);
}

MPRESS_EXPORT int MPI_Request_free(MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (job && request) job->start_streams.forget(*request);
  job = watching(job);
  return job ? engine::request_free(*job, request) : mpi::calls().Request_free(request);
}

MPRESS_EXPORT int MPI_Cancel(MPI_Request* request) {
  engine::Job* job = watching_job();
  return job ? engine::cancel(*job, request) : mpi::calls().Cancel(request);
}

MPRESS_EXPORT int MPI_Request_get_status_all(int count, const MPI_Request requests[], int* flag,
                                             MPI_Status statuses[]) {
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    int complete = 0;
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    const int code = MPI_Request_get_status(requests[i], &complete, status);
    if (code != MPI_SUCCESS) return code;
    *flag = *flag && complete;
  }
  return MPI_SUCCESS;
}

// MPICH tells the status of a persistent request only to the first who looks, so each request is
// looked at once.

MPRESS_EXPORT int MPI_Request_get_status_any(int count, const MPI_Request requests[], int* index,
                                             int* flag, MPI_Status* status) {
  engine::Job* job = watching_job();
  bool any_active = false;
  for (int i = 0; job && i < count; ++i) {
    bool active = false;
    const int code = engine::look(*job, requests[i], &active, flag, status);
    any_active = any_active || active;
    if (!active || (code == MPI_SUCCESS && !*flag)) continue;
    *index = i;
    return code;
  }
  if (!any_active) {
    return mpi::calls().Request_get_status_any(count, requests, index, flag, status);
  }
  *flag = 0;
  *index = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

MPRESS_EXPORT int MPI_Request_get_status_some(int count, const MPI_Request requests[], int* done,
                                              int indices[], MPI_Status statuses[]) {
  engine::Job* job = watching_job();
  bool any_active = false;
  int complete = 0;
  for (int i = 0; job && i < count; ++i) {
    bool active = false;
    int flag = 0;
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[complete];
    const int code = engine::look(*job, requests[i], &active, &flag, status);
    if (code != MPI_SUCCESS) return code;
    any_active = any_active || active;
    if (active && flag) indices[complete++] = i;
  }
  if (!any_active) {
    return mpi::calls().Request_get_status_some(count, requests, done, indices, statuses);
  }
  *done = complete;
  return MPI_SUCCESS;
}
