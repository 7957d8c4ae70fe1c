#include "mpi/job/job.hpp"

#include <cstring>
#include <mutex>
#include <string>

#include "core/changes.hpp"
#include "core/learning/learned.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/job/start_together.hpp"
#include "mpi/objects/self_comm.hpp"
#include "mpi/objects/type_info.hpp"
#include "mpi/progress_hook.hpp"
#include "mpi/requests/freed.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
mpi::Immortal<Job> Job::instance_;

Job::Job() : Messaging({mpi::begin_scope_of_no_call, mpi::end_scope_of_no_call}) {}

void start_thread_if_needed(Job& job) {
  if (!job.collectives.need_thread.load(std::memory_order_relaxed)) return;
  static std::mutex starting;
  const std::lock_guard lock(starting);
  if (!job.collectives.need_thread.exchange(false)) return;
  if (job.progress_thread.start()) return;
  trace::say("rank " + std::to_string(job.rank) +
             ": the system gives no thread, so collective calls that do not block proceed in calls "
             "of MPI alone");
}

void stop_progress_thread() {
  Job::instance_->collectives.need_thread = false;
  Job::instance_->progress_thread.stop();
}

void stop_job() {
  Job& job = *Job::instance_;
  // A job that is off announces its end all the same.
  if (!job.record.is_open() || job.record.header().finished_ns != 0) return;
  // What a stream waits for: all members' devices have been given it.
  job.progress.wait_until([&] { return !job.devices.has_kernel_in_stream; });
  stop_progress_thread();  // where the program's MPI_Finalize passed mpress by
  mpi::remove_progress_hook();
  release_freed(job);
  mpi::raise_now();
  job.teams.drop_kept();
  // Where a rank has ended, what is private to the others ends with their processes.
  if (job.chunks.close()) job.teams.close();
  job.state_ = Job::State::off;
  auto& profile = job.record.header().profile;  // for the report
  const std::string learned = describe_learned(job, job.learned);
  std::strncat(profile, learned.c_str(), sizeof profile - 1 - std::strlen(profile));
  if (job.learned && job.teams.hosts().leader(job.rank) == job.rank) keep_learned(job);
  mpi::forget_types();
  job.record.header().finished_ns = trace::now_ns();
  mpi::close_self_comm();
}

int wait_for(Job& job, MPI_Request* request, MPI_Status* status) {
  // MPI waits best.
  if (job.progress.idle()) return mpi::calls().Wait(request, status);
  int code = MPI_SUCCESS;
  job.progress.wait_until([&] {
    int done = 0;
    code = mpi::calls().Test(request, &done, status);
    return done || code != MPI_SUCCESS;
  });
  return code;
}

int Job::code_of(Status status) const {
  switch (status.code()) {
    case Status::ok: return MPI_SUCCESS;
    case Status::no_memory: return MPI_ERR_NO_MEM;
    case Status::device_failed: return device_code;
    case Status::corrupt: return corrupt_code;
    case Status::unfit_spec: return spec_code;
    case Status::truncated: return MPI_ERR_TRUNCATE;
    case Status::copy_failed: return MPI_ERR_OTHER;
    case Status::transport_failed: return status.own_code();
  }
  return MPI_ERR_INTERN;
}

void note_init() { Job::instance_->saw_init = true; }

void note_session() {
  Job::instance_->has_sessions.store(true, std::memory_order_relaxed);
  note_change();
}

Job* Job::try_start() {
  int initialized = 0;
  int finalized = 0;
  mpi::calls().Initialized(&initialized);
  mpi::calls().Finalized(&finalized);
  if (!initialized || finalized || waits_for_start_together()) return nullptr;
  start_job(false);
  return instance_->state_ == State::active ? &*instance_ : nullptr;
}

}  // namespace mpress::engine
