// Getting on while MPI blocks: MPI's own progress engine calls mpress.
//
// MPICH has MPIX_Async_start for it from 4.3, Open MPI opal_progress_register. MPICH's library for
// the standard ABI, and older MPICHs, have nothing. docs/dev/progress-in-mpi.md has what was found
// out about them, call by call.
#pragma once

namespace mpress::mpi {

/// Has the bound MPI such a hook? Holds as soon as it is bound.
bool has_progress_hook();

/// From now on MPI calls `poll` whenever it waits for something, in any call and in any thread,
/// until `poll` returns false: nothing is under way. Whoever then starts something calls this
/// again, after `poll` would see it; while it is called, that costs a load. Returns false where
/// MPI has no hook. One `poll` a process. MPI runs; thread-safe; may be called by `poll`.
///
/// What `poll` may do:
/// - start sends, receives and non-blocking collectives, on communicators that return errors;
/// - ask whether a request is complete without letting MPI proceed (mpi::Peek does so inside), and
///   then complete it with MPI_Test;
/// - nothing that lets MPI proceed (MPI_Iprobe, MPI_Improbe, MPI_Test of what is not complete) and
///   nothing that blocks. MPICH would wait for itself under MPI_THREAD_MULTIPLE;
/// - wait for no lock that a thread holds while it calls MPI.
/// Under MPI_THREAD_MULTIPLE several threads may be in it at once (Open MPI), or others wait for
/// this one to return (MPICH): it should do a little at a time. It is not called from within
/// itself.
bool add_progress_hook(bool (*poll)());

/// Is this thread in `poll`, or in a call that keeps to the same rules?
bool in_progress_hook();

/// While it lives, this thread keeps to the rules of `poll`: what looks at requests lets MPI not
/// proceed. For calls that a hook of the program's may make.
class HookRules {
 public:
  HookRules();
  HookRules(const HookRules&) = delete;
  HookRules& operator=(const HookRules&) = delete;
  ~HookRules();

 private:
  const bool held_before_;
};

/// Before MPI_Finalize, which in MPICH waits for the hook to end. When it returns, no thread is in
/// `poll`, nor ever will be. Not to be called by `poll`.
void remove_progress_hook();

}  // namespace mpress::mpi
