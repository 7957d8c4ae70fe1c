#include "engine/comm_info.hpp"

#include <numeric>

#include "engine/handle_cache.hpp"
#include "engine/immortal.hpp"
#include "trace/record.hpp"

namespace mpress::engine {
namespace {

Immortal<HandleCache<MPI_Comm, CommInfo>> cache;

/// What is known of a communicator is not its copy's.
int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int forget(MPI_Comm comm, int, void* value, void*) {
  static_cast<CommInfo*>(value)->freed = true;
  cache->erase(comm);
  return MPI_SUCCESS;
}

/// The attribute whose delete callback tells that a communicator ends, however it ends.
int keyval() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    link::mpi().Comm_create_keyval(copy_nothing, forget, &made, nullptr);
    return made;
  }();
  return key;
}

std::vector<int> ranks_in_world(MPI_Comm comm) {
  const link::MpiCalls& mpi = link::mpi();
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int size = 0;
  mpi.Comm_size(comm, &size);
  mpi.Comm_group(comm, &group);
  mpi.Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> world_ranks(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi.Group_translate_ranks(group, size, ranks.data(), world, world_ranks.data());
  mpi.Group_free(&group);
  mpi.Group_free(&world);
  for (int& rank : world_ranks) {
    if (rank == MPI_UNDEFINED) rank = trace::any_peer;
  }
  return world_ranks;
}

std::shared_ptr<CommInfo> make_info(MPI_Comm comm) {
  const link::MpiCalls& mpi = link::mpi();
  int inter = 0;
  if (mpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  auto info = std::make_shared<CommInfo>();
  info->comm = comm;
  info->inter = inter != 0;
  if (!info->inter) info->world_ranks = ranks_in_world(comm);
  if (mpi.Comm_set_attr(comm, keyval(), info.get()) != MPI_SUCCESS) return nullptr;
  return info;
}

}  // namespace

int CommInfo::world_rank(int rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < world_ranks.size()
             ? world_ranks[static_cast<std::size_t>(rank)]
             : trace::any_peer;
}

int CommInfo::raise(int code) const {
  link::mpi().Comm_call_errhandler(freed ? MPI_COMM_WORLD : comm, code);
  return code;
}

std::shared_ptr<CommInfo> comm_info(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  return cache->find(comm, [comm] { return make_info(comm); });
}

}  // namespace mpress::engine
