// The calls that take an MPI_Info for a communicator, which may hold hints for mpress, and
// MPI_Comm_get_info. MPI_Comm_dup hands hints on by itself (mpi/objects/comm_info.cpp). Also those
// that make keyvals, whose callbacks are not for mpress's own duplicates.

#include "mpi/calls/calls.hpp"
#include "mpi/collectives/neighbours/isomorphic_graph.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/comm_calls.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/keyvals.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

/// Behind a call that made a graph. Returns `code`, what MPI's call returned, or another error.
int finish_graph(MPI_Comm comm, MPI_Info info, const mpi::Hints& hints, MPI_Comm* created,
                 int code) {
  engine::Job* const job = engine::active_job();
  if (job && code == MPI_SUCCESS) code = engine::note_promise(*job, comm, info, created);
  return engine::give_hints(hints, created, code);
}

}  // namespace

MPRESS_EXPORT int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return engine::set_info(comm, info);
}

MPRESS_EXPORT int MPI_Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  return engine::get_info(comm, info);
}

MPRESS_EXPORT int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* created) {
  engine::enter_blocking_call();
  mpi::Hints hints;
  const int wrong = engine::take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  const mpi::DuplicateHints given(comm, hints);
  return mpi::calls().Comm_dup_with_info(comm, info, created);
}

MPRESS_EXPORT int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info,
                                      MPI_Comm* created) {
  engine::enter_blocking_call();
  mpi::Hints hints;
  const int wrong = engine::take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  const int code = mpi::calls().Comm_split_type(comm, split_type, key, info, created);
  return engine::give_hints(hints, created, code);
}

MPRESS_EXPORT int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[],
                                        const int degrees[], const int destinations[],
                                        const int weights[], MPI_Info info, int reorder,
                                        MPI_Comm* created) {
  engine::enter_blocking_call();
  mpi::Hints hints;
  const int wrong = engine::take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  const int code = mpi::calls().Dist_graph_create(comm, n, sources, degrees, destinations, weights,
                                                  info, reorder, created);
  return finish_graph(comm, info, hints, created, code);
}

MPRESS_EXPORT int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int sources[],
                                                 const int in_weights[], int out_degree,
                                                 const int destinations[], const int out_weights[],
                                                 MPI_Info info, int reorder, MPI_Comm* created) {
  engine::enter_blocking_call();
  mpi::Hints hints;
  const int wrong = engine::take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  const int code =
      mpi::calls().Dist_graph_create_adjacent(comm, in_degree, sources, in_weights, out_degree,
                                              destinations, out_weights, info, reorder, created);
  return finish_graph(comm, info, hints, created, code);
}

MPRESS_EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* created,
                                          MPI_Request* request) {
  mpi::Hints hints;
  const int wrong = engine::take_hints(comm, info, hints);
  if (wrong != MPI_SUCCESS) return wrong;
  const mpi::DuplicateHints given(comm, hints);
  return mpi::calls().Comm_idup_with_info(comm, info, created, request);
}

MPRESS_EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                                             MPI_Errhandler errhandler, MPI_Comm* created) {
  engine::enter_blocking_call();
  const int code = mpi::calls().Comm_create_from_group(group, tag, info, errhandler, created);
  return engine::give_first_hints(info, created, code);
}

MPRESS_EXPORT int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                                         MPI_Comm_delete_attr_function* remove, int* keyval,
                                         void* extra_state) {
  return mpi::create_comm_keyval(mpi::calls().Comm_create_keyval, copy, remove, keyval,
                                 extra_state);
}

MPRESS_EXPORT int MPI_Keyval_create(MPI_Copy_function* copy, MPI_Delete_function* remove,
                                    int* keyval, void* extra_state) {
  return mpi::create_comm_keyval(mpi::calls().Keyval_create, copy, remove, keyval, extra_state);
}
