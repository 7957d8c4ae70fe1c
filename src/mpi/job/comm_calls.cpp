#include "mpi/job/comm_calls.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "mpi/job/job.hpp"
#include "mpi/job/teams.hpp"
#include "mpi/objects/comm_info.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

int take_hints(MPI_Comm comm, MPI_Info info, mpi::Hints& hints) {
  Job* const job = active_job();
  const std::shared_ptr<mpi::CommInfo> known = job ? mpi::comm_info(comm) : nullptr;
  if (!known) return MPI_SUCCESS;  // MPI refuses the communicator, if it must
  std::string error;
  const int code = mpi::read_hints(info, hints, error);
  if (code == MPI_SUCCESS) {
    job->hint_bounds.include(hints);
    return code;
  }
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

namespace {

/// No two values give the same number.
std::uint64_t number_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same on all ranks
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Members tell each other which of the hints that they have to give alike the communicator has
/// now: MPI_Comm_set_info is collective. Calls that are not decided yet keep what held when they
/// were made. A codec may differ, as messages describe themselves; reductions are errors then.
/// Returns an MPI error code, which is raised.
int share_hints(Job& job, mpi::CommInfo& known) {
  if (!job.teams.may_have(known)) return MPI_SUCCESS;
  auto* const team = Teams::made_for(known);
  if (team) job.progress.wait_until([&] { return team->order().is_idle(); });
  const mpi::Hints hints = known.hints.get();
  const std::string codec = hints.codec ? to_string(hints.codec->value) : "";
  const std::string reproducible = hints.reproducible ? hints.reproducible->text : "";
  std::array<std::uint64_t, 4> most{number_of(codec), 0, number_of(reproducible), 0};
  most[1] = ~most[0];
  most[3] = ~most[2];
  const int code = mpi::calls().Allreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()),
                                          MPI_UINT64_T, MPI_MAX, known.comm);
  if (code != MPI_SUCCESS) return code;
  const bool is_codec_same = most[0] == ~most[1], is_kept = most[2] == ~most[3];
  if (!is_kept) {
    mpi::Hints none;
    none.reproducible = {"0", false};
    known.hints.update(none);
  }
  using Shared = mpi::CommHints::Shared;
  known.hints.set_shared_codec(is_codec_same ? Shared::same : Shared::different);
  if (team) {
    const bool has_one = is_codec_same && hints.codec;
    team->hints().set_codec(has_one ? std::optional(hints.codec->value) : std::nullopt,
                            !is_codec_same);
    team->hints().set_reproducible(known.hints.reproducible(job.config.reproducible));
  }
  if (is_kept) return MPI_SUCCESS;
  trace::say("rank " + std::to_string(job.rank) +
             ": mpress_reproducible: members of a communicator have to give the same value; this "
             "rank gave '" +
             reproducible + "', another something else");
  return known.raise(MPI_ERR_INFO_VALUE);
}

}  // namespace

/// A rank whose hints are wrong takes part, as others wait for it.
int set_info(MPI_Comm comm, MPI_Info info) {
  mpi::Hints hints;
  const int wrong = take_hints(comm, info, hints);
  if (wrong == MPI_SUCCESS) {
    const int code = give_hints(hints, &comm, mpi::calls().Comm_set_info(comm, info));
    if (code != MPI_SUCCESS) return code;
  }
  Job* const job = active_job();
  const auto known = job && mpi::has_shared_keys(info) ? mpi::comm_info(comm) : nullptr;
  const int shared = known ? share_hints(*job, *known) : MPI_SUCCESS;
  return wrong != MPI_SUCCESS ? wrong : shared;
}

int get_info(MPI_Comm comm, MPI_Info* info) {
  const int code = mpi::calls().Comm_get_info(comm, info);
  if (code != MPI_SUCCESS || !active_job()) return code;
  if (const std::shared_ptr<mpi::CommInfo> known = mpi::comm_info(comm)) {
    mpi::write_hints(known->hints.get(), *info);
  }
  return code;
}

}  // namespace mpress::engine
