// What starts mpress, scopes for other languages, and words for errors.

#include <memory>
#include <vector>

#include "api/call.hpp"
#include "api/entries.hpp"
#include "mpi/job/job.hpp"

using namespace mpress;

extern "C" int mpress_init() {
  api::set_error_text({});
  int is_initialized = 0, is_finalized = 0;
  mpi::calls().Initialized(&is_initialized);
  mpi::calls().Finalized(&is_finalized);
  if (!is_initialized) {
    return api::raise(MPI_COMM_NULL, MPI_ERR_OTHER, "mpress_init() comes after MPI_Init");
  }
  if (is_finalized) {
    return api::raise(MPI_COMM_NULL, MPI_ERR_OTHER, "mpress_init() comes before MPI_Finalize");
  }
  api::start_by_request();
  return MPI_SUCCESS;
}

extern "C" int mpress_initialized(int* flag) {
  api::set_error_text({});
  if (!flag) return api::raise(MPI_COMM_NULL, MPI_ERR_ARG, "flag is null; expected where to tell");
  *flag = engine::has_started();
  return MPI_SUCCESS;
}

extern "C" int mpress_stand_in() {
  if (engine::Job* const job = engine::active_job()) job->serves_asked_calls_alone = true;
  return MPI_SUCCESS;
}

namespace {

/// Calls of this thread that have begun; each stays where it is.
std::vector<std::unique_ptr<api::Call>>& begun() {
  static thread_local std::vector<std::unique_ptr<api::Call>> calls;
  return calls;
}

int begin(api::Kind kind, MPI_Comm comm, const mpress_call* call, const void* buffer,
          api::Streams streams) {
  const std::initializer_list<const void*> buffers{buffer};
  auto one = std::make_unique<api::Call>(kind, comm, call, buffers, streams);
  if (one->code() != MPI_SUCCESS) return one->code();
  begun().push_back(std::move(one));
  return MPI_SUCCESS;
}

}  // namespace

extern "C" int mpress_call_begin(MPI_Comm comm, const mpress_call* call, const void* buffer) {
  return begin(api::Kind::unknown, comm, call, buffer, api::Streams::awaited);
}

extern "C" int mpress_collective_begin(MPI_Comm comm, const mpress_call* call, const void* buffer) {
  return begin(api::Kind::collective, comm, call, buffer, api::Streams::implied);
}

extern "C" int mpress_call_end() {
  if (begun().empty()) {
    return api::raise(MPI_COMM_NULL, MPI_ERR_OTHER,
                      "mpress_call_end() without mpress_call_begin()");
  }
  begun().pop_back();
  return MPI_SUCCESS;
}

extern "C" const char* mpress_error_text() { return api::error_text(); }
