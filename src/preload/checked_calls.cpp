// Calls that mpress leaves to MPI, and so to host memory: windows, files, partitioned
// communication, the memory of buffered sends. Given memory of a device they end with an error that
// says so, unless MPI itself knows GPUs.

#include "preload/checked_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <type_traits>

#include "gpu/loaded_gpu.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/staging/bounce_buffer.hpp"
#include "mpi/staging/staged_call.hpp"
#include "preload/narrowing.hpp"
#include "trace/message.hpp"

namespace mpress::preload {
namespace {

using engine::Job;
using mpi::CheckedCalls;

/// Is any of the data in memory of a device that MPI must not see?
bool on_device(Job& job, const void* buffer, MPI_Count count, MPI_Datatype type) {
  return engine::BounceBuffer::is_on_device(job, {buffer, {1, count, type}, {}});
}

int fail(const Job& job, MPI_Win win) {
  mpi::calls().Win_call_errhandler(win, job.host_only_code);
  return job.host_only_code;
}

int fail_on_comm(const Job& job, MPI_Comm comm) {
  mpi::calls().Comm_call_errhandler(comm, job.host_only_code);
  return job.host_only_code;
}

// Each look at a call's arguments says whether a buffer lies on a device, and raises the error.

struct Origin {
  template <typename N, typename... More>
  static bool refuses(Job& job, const void* data, N count, MPI_Datatype type, More...) {
    return on_device(job, data, count, type);
  }
  template <typename N, typename... More>
  static int raise(Job& job, const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype,
                   MPI_Win win, More...) {
    return fail(job, win);
  }
};

struct Accumulated : Origin {
  template <typename N, typename... More>
  static int raise(Job& job, const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Op,
                   MPI_Win win, More...) {
    return fail(job, win);
  }
};

struct Fetched {
  template <typename N, typename... More>
  static bool refuses(Job& job, const void* data, N count, MPI_Datatype type, void* result,
                      N result_count, MPI_Datatype result_type, int, MPI_Aint, N, MPI_Datatype,
                      MPI_Op op, More...) {
    return on_device(job, result, result_count, result_type) ||
           (op != MPI_NO_OP && on_device(job, data, count, type));
  }
  template <typename N, typename... More>
  static int raise(Job& job, const void*, N, MPI_Datatype, void*, N, MPI_Datatype, int, MPI_Aint, N,
                   MPI_Datatype, MPI_Op, MPI_Win win, More...) {
    return fail(job, win);
  }
};

struct FetchedOne {
  static bool refuses(Job& job, const void* data, void* result, MPI_Datatype type, int, MPI_Aint,
                      MPI_Op op, MPI_Win) {
    return on_device(job, result, 1, type) || (op != MPI_NO_OP && on_device(job, data, 1, type));
  }
  static int raise(Job& job, const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win win) {
    return fail(job, win);
  }
};

struct Swapped {
  static bool refuses(Job& job, const void* data, const void* compared, void* result,
                      MPI_Datatype type, int, MPI_Aint, MPI_Win) {
    return on_device(job, data, 1, type) || on_device(job, compared, 1, type) ||
           on_device(job, result, 1, type);
  }
  static int raise(Job& job, const void*, const void*, void*, MPI_Datatype, int, MPI_Aint,
                   MPI_Win win) {
    return fail(job, win);
  }
};

struct Window {
  template <typename D>
  static bool refuses(Job& job, void* base, MPI_Aint bytes, D, MPI_Info, MPI_Comm, MPI_Win*) {
    return on_device(job, base, bytes, MPI_BYTE);
  }
  template <typename D>
  static int raise(Job& job, void*, MPI_Aint, D, MPI_Info, MPI_Comm comm, MPI_Win*) {
    return fail_on_comm(job, comm);
  }
};

struct WindowPart {
  static bool refuses(Job& job, MPI_Win, void* base, MPI_Aint bytes) {
    return on_device(job, base, bytes, MPI_BYTE);
  }
  static int raise(Job& job, MPI_Win win, void*, MPI_Aint) { return fail(job, win); }
};

struct Attached {
  template <typename N>
  static bool refuses(Job& job, void* buffer, N bytes) {
    return on_device(job, buffer, bytes, MPI_BYTE);
  }
  template <typename N>
  static int raise(Job& job, void*, N) {
    return fail_on_comm(job, MPI_COMM_SELF);
  }
};

struct Partitioned {
  static bool refuses(Job& job, const void* buffer, int partitions, MPI_Count count,
                      MPI_Datatype type, int, int, MPI_Comm, MPI_Info, MPI_Request*) {
    return on_device(job, buffer, partitions * count, type);
  }
  static int raise(Job& job, const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm comm,
                   MPI_Info, MPI_Request*) {
    return fail_on_comm(job, comm);
  }
};

struct File {
  template <typename N, typename... More>
  static bool refuses(Job& job, MPI_File, const void* data, N count, MPI_Datatype type, More...) {
    return on_device(job, data, count, type);
  }
  template <typename... More>
  static int raise(Job& job, MPI_File file, More...) {
    mpi::calls().File_call_errhandler(file, job.host_only_code);
    return job.host_only_code;
  }
};

struct FileAt : File {
  template <typename... More>
  static bool refuses(Job& job, MPI_File file, MPI_Offset, More... more) {
    return File::refuses(job, file, more...);
  }
};

void say_once(const Job& job, const char* call) {
  static std::once_flag said;
  std::call_once(said, [&] {
    trace::say("rank " + std::to_string(job.rank) + ": " + call +
               " was given memory of a device, which only messages and collective calls may have");
  });
}

/// A call's name as a template's argument.
template <std::size_t size>
struct Name {
  constexpr Name(const char (&given)[size]) { std::copy_n(given, size, text); }  // NOLINT
  char text[size];
};

template <typename Signature>
struct Entries;
template <typename... A>
struct Entries<int(A...)> {
  template <Name name, typename Check, auto own, auto ints>
  static int entry(A... arguments) {
    Job* job = engine::enter_blocking_call();
    if (job && gpu::in_use() && !job->gpu_aware && Check::refuses(*job, arguments...)) {
      say_once(*job, name.text);
      return Check::raise(*job, arguments...);
    }
    const auto call = mpi::checked_calls().*own;
    if constexpr (!std::is_same_v<decltype(own), decltype(ints)>) {
      if (!call) {
        engine::StagedCall arrays;
        return call_narrowed({arrays, {}}, mpi::checked_calls().*ints, arguments...);
      }
    }
    return call(arguments...);
  }
};

}  // namespace

#define MPRESS_ENTRY(name, Signature, check, ints) \
  .name = Entries<Signature>::entry<"MPI_" #name, check, &CheckedCalls::name, &CheckedCalls::ints>,
#define MPRESS_ONE(name, check, ...) MPRESS_ENTRY(name, mpi::Checked::name, check, name)
#define MPRESS_BOTH(name, check, ...)                 \
  MPRESS_ENTRY(name, mpi::Checked::name, check, name) \
  MPRESS_ENTRY(name##_c, mpi::LargeChecked::name, check, name)

constinit const CheckedCalls host_only_calls = {MPRESS_CHECKED_BOTH_FORMS(MPRESS_BOTH)
                                                    MPRESS_CHECKED_ONE_FORM(MPRESS_ONE)};

}  // namespace mpress::preload
