// The functions of a backend that libmpress.so exports as mpress_NAME (front/api_calls.hpp).
#pragma once

#include "front/api_calls.hpp"
#include "mpi/calls/calls.hpp"

// Entry points of src/preload. Headers may be older than the call; PMPI_NAME is always declared.
#define MPRESS_DECLARE(name) extern "C" decltype(PMPI_##name) MPI_##name;
MPRESS_DECLARE(Send_c)
MPRESS_DECLARE(Recv_c)
MPRESS_DECLARE(Sendrecv_c)
MPRESS_DECLARE(Isend_c)
MPRESS_DECLARE(Irecv_c)
MPRESS_DECLARE(Send_init_c)
MPRESS_DECLARE(Recv_init_c)
MPRESS_DECLARE(Probe)
MPRESS_DECLARE(Iprobe)
MPRESS_DECLARE(Mprobe)
MPRESS_DECLARE(Improbe)
MPRESS_DECLARE(Mrecv_c)
MPRESS_DECLARE(Imrecv_c)
MPRESS_DECLARE(Wait)
MPRESS_DECLARE(Waitall)
MPRESS_DECLARE(Waitany)
MPRESS_DECLARE(Test)
MPRESS_DECLARE(Testall)
MPRESS_DECLARE(Start)
MPRESS_DECLARE(Startall)
MPRESS_DECLARE(Cancel)
MPRESS_DECLARE(Request_free)
#undef MPRESS_DECLARE

/// For libmpress.so alone: it has made some callers of MPI call mpress, and others it has not.
extern "C" int mpress_stand_in();

namespace mpress::api {

/// In the order of the enum ApiCall.
extern void* const targets[front::api_call_count];

}  // namespace mpress::api
