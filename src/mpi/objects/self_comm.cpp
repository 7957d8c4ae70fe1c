#include "mpi/objects/self_comm.hpp"

#include <atomic>

namespace mpress::mpi {
namespace {

std::atomic<bool> is_open{false};
MPI_Comm comm{};

}  // namespace

MPI_Comm self_comm() { return is_open.load(std::memory_order_acquire) ? comm : MPI_COMM_NULL; }

void open_self_comm() {
  calls().Comm_split(MPI_COMM_SELF, 0, 0, &comm);
  calls().Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  is_open.store(true, std::memory_order_release);
}

void close_self_comm() {
  if (!is_open.exchange(false)) return;
  calls().Comm_free(&comm);
}

}  // namespace mpress::mpi
