#include "mpi/objects/keyvals.hpp"

#include <mutex>
#include <set>
#include <tuple>

#include "mpi/calls/binding_keyvals.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/immortal.hpp"
#include "mpi/progress_hook.hpp"

namespace mpress::mpi {
namespace {

/// What the program gave: copy and delete callback, extra state.
using Callbacks = std::tuple<CopyCallback, DeleteCallback, void*>;

/// An attribute may outlive its keyval, and MPI does not say when the last one is gone: so these
/// stay, each once however often keyvals are made of it.
Immortal<std::set<Callbacks>> known;
std::mutex adding;

const Callbacks& given(void* extra_state) { return *static_cast<const Callbacks*>(extra_state); }

int copy_unless_private(MPI_Comm comm, int keyval, void* extra_state, void* value, void* copied,
                        int* flag) {
  *flag = 0;
  if (PrivateDuplicate::is_under_way()) return MPI_SUCCESS;
  const auto& [copy, remove, state] = given(extra_state);
  return copy(comm, keyval, state, value, copied, flag);
}

int remove_value(MPI_Comm comm, int keyval, void* value, void* extra_state) {
  const auto& [copy, remove, state] = given(extra_state);
  return remove ? remove(comm, keyval, value, state) : MPI_SUCCESS;
}

}  // namespace

bool hides_private_duplicates() {
#if defined(MPICH_VERSION)
  return has_progress_hook() && !may_bindings_make_keyvals();
#else
  return false;
#endif
}

int create_comm_keyval(decltype(calls().Comm_create_keyval) create, CopyCallback copy,
                       DeleteCallback remove, int* keyval, void* extra_state) {
  if (!copy || !hides_private_duplicates()) return create(copy, remove, keyval, extra_state);
  const Callbacks* callbacks = nullptr;
  {
    const std::lock_guard lock(adding);
    callbacks = &*known->insert({copy, remove, extra_state}).first;
  }
  return calls().Comm_create_keyval(copy_unless_private, remove_value, keyval,
                                    const_cast<Callbacks*>(callbacks));
}

}  // namespace mpress::mpi
