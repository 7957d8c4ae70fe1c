#include "api/start.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/start_together.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/immortal.hpp"
#include "trace/message.hpp"
#include "trace/record.hpp"

namespace mpress::api {
namespace {

/// Never destroyed: threads of the program's may call while the process ends.
struct State {
  std::atomic<bool> all_are_own{false};  ///< the usual answer
  std::atomic<bool> started_here{false};
  std::mutex starting;  ///< held by who starts mpress

  std::mutex deciding;  ///< guards what follows
  std::condition_variable decided;
  bool is_deciding = false;
  int receives = 0;     ///< early ones under way
  int collectives = 0;  ///< the same
  bool had_collectives = false;
  bool has_own_messages = false;     ///< all ranks have agreed on it
  bool has_own_collectives = false;  ///< the same, of those that start nothing
};
mpi::Immortal<State> state;

bool is_collective(Kind kind) {
  return kind == Kind::collective || kind == Kind::immediate_collective;
}

/// Do all ranks take part?
bool is_of_all(const mpi::CommInfo& comm) {
  int size = 0;
  mpi::calls().Comm_size(MPI_COMM_WORLD, &size);
  const std::vector<int>& ranks = comm.world_ranks;
  return !comm.no_frames && ranks.size() == static_cast<std::size_t>(size) &&
         std::find(ranks.begin(), ranks.end(), trace::any_peer) == ranks.end();
}

/// The first of the processes that one launcher has started on this host, for as long as it lives:
/// the name of a socket, which ends with its process, is taken once.
bool is_first_of_job() {
  const int file = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Behind a 0: no file.
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                   "mpress-%ld-early", static_cast<long>(::getppid()));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                           static_cast<std::size_t>(length));
  if (::bind(file, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  ::close(file);
  return false;
}

void say_once(Kind kind) {
  static std::once_flag once;
  std::call_once(once, [kind] {
    if (settings().disabled || !is_first_of_job()) return;
    const char* what = "a message";
    if (kind == Kind::collective) what = "a collective call on some of the ranks";
    if (kind == Kind::immediate_collective) what = "a collective call that does not block";
    trace::say(std::string(what) +
               " went by MPI alone, uncompressed: mpress had not started. Have all ranks call "
               "mpress_init() after MPI_Init");
  });
}

/// All ranks exchange which calls are under way, or were made, that MPI alone knows. All of them
/// are in this function then, so threads that wait for its end do not wait for long.
/// `is_requested`: collective calls that are over do not count, since the program says when it
/// wants mpress.
void agree(bool is_requested) {
  const mpi::Calls& mpi = mpi::calls();
  mpi.Barrier(MPI_COMM_WORLD);
  int early[2];
  {
    std::lock_guard lock(state->deciding);
    state->is_deciding = true;
    early[0] = state->receives > 0;
    early[1] = is_requested ? state->collectives > 0 : state->had_collectives;
  }
  mpi.Allreduce(MPI_IN_PLACE, early, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  {
    std::lock_guard lock(state->deciding);
    state->has_own_messages = state->has_own_messages || !early[0];
    state->has_own_collectives = state->has_own_collectives || !early[1];
    state->all_are_own = state->has_own_messages && state->has_own_collectives;
    state->is_deciding = false;
  }
  state->decided.notify_all();
}

/// Returns when all ranks have called it, unless mpress has started. `starting` is locked.
void start() {
  if (engine::has_started()) {
    if (!state->started_here) state->all_are_own = true;
    return;
  }
  state->started_here = true;
  engine::start_job_together();
  agree(false);
}

}  // namespace

const Config& settings() {
  static const Config* const config = [] {
    engine::read_settings();
    auto* const read = new Config;  // stacks may be small
    std::string error;
    load_config(*read, error);
    return read;
  }();
  return *config;
}

EarlyCall::~EarlyCall() {
  if (stays_) return;
  std::lock_guard lock(state->deciding);
  --(is_collective(kind_) ? state->collectives : state->receives);
}

Admission admit(Kind kind, MPI_Comm comm) {
  if (state->all_are_own.load(std::memory_order_acquire)) return {true};
  // In this order: who starts it here says so before it has started.
  if (engine::has_started() && !state->started_here) return {state->all_are_own = true};
  engine::wait_for_start_together();
  if (is_collective(kind)) {
    const auto known = comm == MPI_COMM_NULL ? nullptr : mpi::comm_info(comm);
    if (!known) return {false};  // MPI says what is wrong
    if (kind == Kind::collective && is_of_all(*known)) {
      std::lock_guard lock(state->starting);
      start();
      return {true};
    }
    const bool stays_in_process = known->world_ranks.size() == 1 && !known->no_frames;
    if (stays_in_process) return {false};
  }
  {
    std::unique_lock lock(state->deciding);
    state->decided.wait(lock, [] { return !state->is_deciding; });
    if (is_collective(kind) ? state->has_own_collectives : state->has_own_messages) return {true};
    if (is_collective(kind)) {
      state->had_collectives = true;
      ++state->collectives;
    } else if (kind == Kind::receive) {
      ++state->receives;
    } else if (kind == Kind::unknown) {
      return {false};
    }
  }
  say_once(kind);
  return {false, kind == Kind::send ? nullptr : std::make_unique<EarlyCall>(kind)};
}

bool may_have_device_memory() { return engine::mpi_takes_devices(settings()); }

void start_by_request() {
  std::lock_guard lock(state->starting);
  start();
  if (state->all_are_own) return;
  agree(true);
  int rank = 0;
  mpi::calls().Comm_rank(MPI_COMM_WORLD, &rank);
  if (state->all_are_own || rank != 0) return;
  trace::say(std::string("mpress_init(): on some rank ") +
             (state->has_own_messages ? "a collective call" : "a receive") +
             " began before mpress did, and is not over, so MPI alone serves such calls. Call "
             "mpress_init() again when it is over");
}

}  // namespace mpress::api
