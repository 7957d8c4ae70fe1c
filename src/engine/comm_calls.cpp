#include "engine/comm_calls.hpp"

#include <string>

#include "engine/job.hpp"
#include "mpi/comm_info.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

int take_hints(MPI_Comm comm, MPI_Info info, mpi::Hints& hints) {
  const Job* job = active_job();
  const std::shared_ptr<mpi::CommInfo> known = job ? mpi::comm_info(comm) : nullptr;
  if (!known) return MPI_SUCCESS;  // MPI refuses the communicator, if it must
  std::string error;
  const int code = read_hints(info, hints, error);
  if (code == MPI_SUCCESS) return code;
  trace::say("rank " + std::to_string(job->rank) + ": " + error);
  return known->raise(code);
}

int give_hints(const mpi::Hints& hints, const MPI_Comm* created, int code) {
  if (code != MPI_SUCCESS || hints.empty()) return code;
  if (const std::shared_ptr<mpi::CommInfo> known = mpi::comm_info(*created))
    known->hints.update(hints);
  return code;
}

int give_first_hints(MPI_Info info, MPI_Comm* created, int code) {
  if (code != MPI_SUCCESS || info == MPI_INFO_NULL) return code;
  mpi::Hints hints;
  const int wrong = take_hints(*created, info, hints);
  if (wrong == MPI_SUCCESS) return give_hints(hints, created, code);
  mpi::calls().Comm_free(created);
  return wrong;
}

int set_info(MPI_Comm comm, MPI_Info info) {
  mpi::Hints hints;
  const int wrong = take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  return give_hints(hints, &comm, mpi::calls().Comm_set_info(comm, info));
}

int get_info(MPI_Comm comm, MPI_Info* info) {
  const int code = mpi::calls().Comm_get_info(comm, info);
  if (code != MPI_SUCCESS || !active_job()) return code;
  if (const std::shared_ptr<mpi::CommInfo> known = mpi::comm_info(comm)) {
    write_hints(known->hints.get(), *info);
  }
  return code;
}

}  // namespace mpress::engine
