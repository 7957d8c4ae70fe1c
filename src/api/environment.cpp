// mpress_init() and mpress_error_text().

#include "api/call.hpp"
#include "engine/job.hpp"

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
  engine::start_job_together();
  return MPI_SUCCESS;
}

extern "C" const char* mpress_error_text() { return api::error_text(); }
