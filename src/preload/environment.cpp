// MPI_Init, where mpress starts; MPI_Finalize, before which its thread ends (the rest stops by
// itself: mpi/job/job.hpp); MPI_Session_init, where it does not start; and MPI_Barrier, after
// which a program may look at what a freed request received.

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "message/protocol_table.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/collectives/algorithm_table.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/type_info.hpp"
#include "preload/export.hpp"
#include "trace/message.hpp"

using namespace mpress;

MPRESS_EXPORT int MPI_Init(int* argc, char*** argv) {
  const mpi::Calls& mpi = mpi::calls();
  engine::read_settings();
  engine::note_init();
  int provided = MPI_THREAD_SINGLE;
  const int code = engine::wants_threads()
                       ? mpi.Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided)
                       : mpi.Init(argc, argv);
  if (code == MPI_SUCCESS) engine::start_job(true);
  return code;
}

MPRESS_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const mpi::Calls& mpi = mpi::calls();
  engine::read_settings();
  engine::note_init();
  const int level = engine::wants_threads() ? MPI_THREAD_MULTIPLE : required;
  const int code = mpi.Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) engine::start_job(true);
  return code;
}

int (*mpress::preload::finalize_behind)() = nullptr;

namespace {

/// To the file that MPRESS_PROTOCOLS names rank 0 writes how its messages and calls go.
void keep_tables(engine::Job& job) {
  const std::string& path = job.config.protocols_file;
  if (path.empty() || job.rank != 0) return;
  const auto floats = mpi::type_info(MPI_FLOAT);
  const auto world = mpi::comm_info(MPI_COMM_WORLD);
  if (!floats || !world) return;
  std::ofstream file(path);
  file << "{" + engine::protocol_table(job, *floats, *world) + ", " + engine::algorithm_table(job) +
              "}\n";
  if (!file.flush()) {
    trace::say("rank 0: MPRESS_PROTOCOLS: no table can be kept in " + path + ": " +
               std::strerror(errno));
  }
}

}  // namespace

/// A tool that is loaded behind mpress reports in its own, and calls PMPI_Finalize, which comes
/// here again.
MPRESS_EXPORT int MPI_Finalize() {
  static std::atomic<bool> is_under_way{false};
  engine::Job* const job = engine::has_started() ? engine::active_job() : nullptr;
  if (job && !is_under_way) keep_tables(*job);
  engine::stop_progress_thread();
  const auto behind = preload::finalize_behind;
  return behind && !is_under_way.exchange(true) ? behind() : mpi::calls().Finalize();
}

MPRESS_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  const mpi::Calls& mpi = mpi::calls();
  engine::read_settings();
  engine::note_session();
  return mpi.Session_init(info, errhandler, session);
}

MPRESS_EXPORT int MPI_Barrier(MPI_Comm comm) {
  // MPI_Ibarrier in its place would match no other rank's MPI_Barrier.
  engine::Job* const job = engine::active_job();
  if (job) engine::before_blocking(*job);
  const int code = engine::after_blocking(job, mpi::calls().Barrier(comm));
  if (job) job->progress.advance();
  return code;
}
