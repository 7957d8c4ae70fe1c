#include "mpi/gpu_aware.hpp"

#include <sstream>
#include <string>

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {
namespace {

bool says_so() {
  const auto query = reinterpret_cast<int (*)()>(find_symbol("MPIX_Query_cuda_support"));
  return query && query() != 0;
}

/// A list of kinds, each with restrictors behind colons: "system,mpi,cuda:device".
bool lists_cuda() {
  const Calls& mpi = calls();
  MPI_Info info = MPI_INFO_NULL;
  if (mpi.Comm_get_info(MPI_COMM_WORLD, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) {
    return false;
  }
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  mpi.Info_get(info, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL, value, &found);
  mpi.Info_free(&info);
  if (!found) return false;
  std::istringstream kinds(value);
  for (std::string kind; std::getline(kinds, kind, ',');) {
    if (kind == "cuda" || kind.rfind("cuda:device", 0) == 0) return true;
  }
  return false;
}

}  // namespace

bool takes_device_memory() { return says_so() || lists_cuda(); }

}  // namespace mpress::mpi
