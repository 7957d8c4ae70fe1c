// The state of mpress in one process of a job, as far as it is MPI's; the rest is Messaging's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "core/learning/probe.hpp"
#include "message/messaging.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/job/teams.hpp"
#include "mpi/messages/probed.hpp"
#include "mpi/mpi_channel.hpp"
#include "mpi/objects/immortal.hpp"
#include "mpi/peek.hpp"
#include "mpi/requests/request_table.hpp"
#include "mpi/requests/start_streams.hpp"

namespace mpress::engine {

class Job final : public Messaging {
 public:
  Job();

  mpi::Peek peek;
  RequestTable requests;
  StartStreams start_streams;
  ProbedMessages probed;
  Teams teams{progress, peek};
  mpi::MpiChannel channel;  ///< of the link that has one
  std::size_t least_reduced_bytes =
      64 * 1024;  ///< of a rank's part, that links between devices sum
  std::atomic<bool> serves_asked_calls_alone{false};  ///< all others are MPI's
  bool threaded = false;                              ///< MPI_THREAD_MULTIPLE

  /// May messages to memory of the host come as frames, or as headers? Told by all ranks in
  /// MPI_Init, and by what came since.
  bool may_get_frames() const {
    return gets_frames || expects_data() || has_got_frames.load(std::memory_order_relaxed);
  }

  bool saw_init = false;  ///< MPI_Init came by mpress, and so has every call that makes a keyval
  /// Which collective calls may be served by mpress: the same on all ranks.
  struct {
    bool on_devices = false;  ///< those of communicators that have buffers there
    bool reductions = false;  ///< of these the reductions between ranks of a host, at least
    /// Those on host memory, where compressing may pay within hosts, and between them; by codec.
    GainsByCodec gains;
    Gains usual;             ///< of the environment's
    Gains most;              ///< of any, where calls may ask for codecs
    bool immediate = false;  ///< non-blocking and persistent ones, too
    bool in_hook = false;    ///< these proceed in the progress hook of this process's MPI
    std::atomic<bool> need_thread{false};  ///< or by a progress thread, which is started for them
    bool makes_teams = false;              ///< also as the first call on a communicator
    bool keeps_topologies = false;         ///< private communicators have those of the program's
    const Gains& of(const Spec& spec) const {
      const Codec codec = spec.codec == Codec::automatic ? Codec::mpc : spec.codec;
      return gains[static_cast<std::size_t>(codec)];
    }
    bool any() const { return on_devices || reductions || usual.any(); }
  } collectives;
  bool learned = false;     ///< from messages, too; the report says so
  bool gets_frames = true;  ///< some rank may compress, or cut, messages to memory of the host
  /// The error code of MPI's for a status.
  int code_of(Status status) const;
  int corrupt_code = MPI_ERR_OTHER;  ///< the error code of a frame that cannot be decoded
  int spec_code = MPI_ERR_OTHER;     ///< the error code of a spec that an element type refuses
  int device_code = MPI_ERR_OTHER;   ///< the error code of a device that refuses to work
  int hints_code =
      MPI_ERR_OTHER;  ///< the error code of a reduction whose ranks gave various codecs
  int host_only_code = MPI_ERR_OTHER;  ///< the error code of device memory where none may be

 private:
  friend Job* active_job();
  friend void read_settings();
  friend bool wants_threads();
  friend void start_job(bool);
  friend void start_job_together();
  friend bool has_started();
  friend void stop_progress_thread();
  friend void stop_job();
  friend void note_init();
  friend void note_session();
  enum class State : unsigned char { unstarted, active, off };
  std::atomic<State> state_{State::unstarted};
  bool lacks_identity_ = false;  ///< and is off for that
  static mpi::Immortal<Job> instance_;
  static Job* try_start();
};

/// Reads and checks the environment, once, before MPI runs; ends the process where it is wrong.
void read_settings();

/// Is MPI to be started with MPI_THREAD_MULTIPLE, whatever the program asks for?
bool wants_threads();

/// Starts mpress in a process whose MPI runs. It stays off (saying so once) where nothing tells
/// the identity of the job, or where it was disabled. `at_init`: all ranks do this now, in
/// MPI_Init; only then can the collective link for chunks be made.
void start_job(bool at_init);

/// The same for a program that calls mpress's own interface, where mpress is not at work yet; all
/// ranks of MPI_COMM_WORLD do this now. They agree on an identity where the launcher gives none.
void start_job_together();

/// Before a collective call that does not block goes on by itself: starts the progress thread,
/// where such calls need one and it has not started. Thread-safe.
void start_thread_if_needed(Job& job);

/// The program calls MPI_Init by mpress.
void note_init();

/// Has a start been tried, with whatever result, and not only for lack of an identity?
bool has_started();

/// Before MPI_Finalize begins: MPICH takes no lock back that another thread holds by then.
/// Operations proceed in calls from here on.
void stop_progress_thread();

/// Completes what is left to do, and the statistics. MPI_Finalize calls it, through an attribute
/// that start_job() leaves.
void stop_job();

/// To be called before a session of MPI begins, whether or not mpress is at work.
void note_session();

/// The job, where mpress is at work; null where calls are to be left alone. A program whose MPI
/// was started behind mpress's back is joined at its first message. It is the process's, as a
/// process has one MPI and one rank of it, and not all calls have a handle to find a job by.
inline Job* active_job() {
  switch (Job::instance_->state_.load(std::memory_order_acquire)) {
    case Job::State::active: return &*Job::instance_;
    case Job::State::off: return nullptr;
    case Job::State::unstarted: break;
  }
  return Job::try_start();
}

/// The same at the beginning of a call, which also lets some of what is under way
/// proceed.
inline Job* enter_call() {
  Job* job = active_job();
  if (job && !job->progress.idle()) job->progress.advance(Progress::few);
  return job;
}

/// Waits until MPI has completed `request`, and lets all operations proceed meanwhile. Returns
/// MPI's error code; what it raised is raised.
int wait_for(Job& job, MPI_Request* request, MPI_Status* status);

}  // namespace mpress::engine
