// The loop that measures: a barrier, an operation, its time. The barrier is by dissemination and
// the benchmark's own, as MPIs' differ (Hensgen, Finkel, Manber, Int. J. Parallel Program. 17(1),
// 1988).
#include <mpi.h>

#include "bench/operations.hpp"

namespace mpress::bench {
namespace {

constexpr int tag = 1;

int disseminate(MPI_Comm comm, int rank, int size) {
  for (int distance = 1; distance < size; distance *= 2) {
    const int code =
        PMPI_Sendrecv(nullptr, 0, MPI_BYTE, (rank + distance) % size, tag, nullptr, 0, MPI_BYTE,
                      (rank - distance + size) % size, tag, comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// `made` is not MPI_COMM_NULL where the operation has made a communicator that is to be freed.
int perform(const Operation& operation, MPI_Comm* made) {
  int code = MPI_SUCCESS;
  const MPI_Comm* comm = operation.exchange ? operation.exchange->comm : nullptr;
  MPI_Comm created = MPI_COMM_NULL;
  if (operation.creation) {
    code = create(*operation.creation, &created);
    comm = &created;
    if (operation.creation->kind != Creation::attribute) *made = created;
  }
  if (code == MPI_SUCCESS && operation.exchange) code = exchange(*operation.exchange, *comm);
  if (code == MPI_SUCCESS && operation.update) update(*operation.update);
  return code;
}

}  // namespace
}  // namespace mpress::bench

/// Runs operation order[i] for each i, and sets seconds[i]. All ranks of `comm` give the same
/// order. Returns an error code of MPI's.
extern "C" __attribute__((visibility("default"))) int mpress_bench_measure(
    const mpress::bench::Operation* operations, const int* order, int count, const MPI_Comm* comm,
    double* seconds) {
  int rank = 0, size = 1;
  PMPI_Comm_rank(*comm, &rank);
  PMPI_Comm_size(*comm, &size);
  for (int i = 0; i < count; ++i) {
    int code = mpress::bench::disseminate(*comm, rank, size);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm made = MPI_COMM_NULL;
    const double begin = PMPI_Wtime();
    code = mpress::bench::perform(operations[order[i]], &made);
    seconds[i] = PMPI_Wtime() - begin;
    // As the program frees it: mpress's neighbourhoods end with their communicators.
    if (made != MPI_COMM_NULL) PMPI_Comm_free(&made);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}
