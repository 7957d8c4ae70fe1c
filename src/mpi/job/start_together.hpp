// The start of mpress by calls of its own interface: start_job_together(), which all ranks call at
// some moment of the program's (api/start).
#pragma once

#include "config/config.hpp"

namespace mpress::engine {

/// Until then no message joins the process to a job (active_job()): mpress could never start
/// together with the others after that.
void wait_for_start_together();
bool waits_for_start_together();

/// Does MPI take memory of devices, by the settings or by what it says? MPI runs.
bool mpi_takes_devices(const Config& config);

}  // namespace mpress::engine
