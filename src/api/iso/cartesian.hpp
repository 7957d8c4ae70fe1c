// The grid of a Cartesian communicator, and what the functions of include/mpress/iso.h have in
// common.
#pragma once

#include <mpi.h>

#include <new>
#include <string>
#include <vector>

#include "api/call.hpp"
#include "mpi/error_handlers.hpp"
#include "schedule/neighbourhoods/grid.hpp"

namespace mpress::api {

struct Cartesian {
  schedule::Grid grid;
  int rank = 0;
  std::vector<int> coordinates;  ///< of `rank`
};

/// As MPI has a rank that Grid::neighbour() gives.
inline int rank_or_null(int rank) { return rank == schedule::Grid::none ? MPI_PROC_NULL : rank; }

/// The error of a call that is not raised yet; empty: there is none.
struct Wrong {
  int code = MPI_SUCCESS;
  std::string text = {};
  bool is_raised = false;  ///< by MPI
  explicit operator bool() const { return code != MPI_SUCCESS; }
};

/// Raises it on `comm`, if there is an error. Returns its code.
int raise(MPI_Comm comm, Wrong wrong);

Wrong is_null(const char* name);
Wrong is_negative(const char* name, int given);

/// Begins a call: MPI runs, and `comm` is a communicator.
Wrong open_call(MPI_Comm comm);

/// Begins a call on a communicator that has a grid. May throw std::bad_alloc.
Wrong read_cartesian(MPI_Comm comm, Cartesian& cartesian);

/// Raises that memory ran out. Takes none.
int raise_no_memory(MPI_Comm comm);

/// Runs `body`, and returns its code. Where memory runs out, raises the error for that.
template <typename Body>
int guarded(MPI_Comm comm, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return raise_no_memory(comm);
  }
}

/// The error of a query of MPI's, which is raised once. Where the program's handler is MPI's own
/// affair, MPICH returns success once it has called that: `is_answered` says whether the query has
/// written its answer.
template <typename Query, typename IsAnswered>
Wrong asked(const char* what, Query query, IsAnswered is_answered) {
  const mpi::HeldError held;
  const int code = query();
  if (held.is_held()) return {held.code(code), std::string("MPI knows no such ") + what};
  if (code == MPI_SUCCESS && is_answered()) return {};
  return {code == MPI_SUCCESS ? MPI_ERR_ARG : code, {}, true};
}

}  // namespace mpress::api
