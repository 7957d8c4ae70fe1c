#include "mpi/objects/comm_info.hpp"

#include <numeric>
#include <utility>

#include "mpi/error_handlers.hpp"
#include "mpi/objects/handle_cache.hpp"
#include "mpi/objects/immortal.hpp"
#include "trace/record.hpp"

namespace mpress::mpi {
namespace {

Immortal<HandleCache<MPI_Comm, CommInfo>> cache;

/// Each communicator that we know of holds its entry as an attribute: the copy callback hands
/// hints on to duplicates, the delete callback tells that a communicator ends, however it ends.
using Attribute = std::shared_ptr<CommInfo>;

/// A duplicate gets an entry with what it inherits and nothing else; make_info() completes it.
int copy_hints(MPI_Comm comm, int, void*, void* value, void* copied, int* flag) {
  *flag = 0;
  const CommInfo& parent = **static_cast<Attribute*>(value);
  const bool is_private = PrivateDuplicate::is_under_way();
  if (is_private && !parent.is_distributed_graph) return MPI_SUCCESS;
  const Hints* given = DuplicateHints::given(comm);
  const Hints hints = given ? *given : parent.hints.get();
  *flag = parent.no_frames || parent.is_distributed_graph || !hints.empty();
  if (!*flag) return MPI_SUCCESS;
  auto copy = std::make_unique<Attribute>(std::make_shared<CommInfo>());
  (*copy)->is_distributed_graph = parent.is_distributed_graph;
  if (!is_private) {
    (*copy)->no_frames = parent.no_frames;
    (*copy)->graph = parent.graph;
    (*copy)->hints.update(hints);
  }
  *static_cast<void**>(copied) = copy.release();
  return MPI_SUCCESS;
}

void set_freed(CommInfo& info) {
  info.freed = true;
  if (Attachment* attached = info.attached()) attached->comm_freed();
}

int forget(MPI_Comm comm, int, void* value, void*) {
  const std::unique_ptr<Attribute> info(static_cast<Attribute*>(value));
  if (Attachment* attached = (*info)->attached()) attached->comm_ends();
  if (EndingComm* ending = EndingComm::of(comm)) {
    ending->hold(*info);
  } else {
    set_freed(**info);
  }
  cache->erase(comm);
  return MPI_SUCCESS;
}

int keyval() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    calls().Comm_create_keyval(copy_hints, forget, &made, nullptr);
    return made;
  }();
  return key;
}

/// With sessions, MPI and its communicators may outlive MPI_COMM_WORLD.
bool world_exists() {
  int finalized = 0;
  calls().Finalized(&finalized);
  return !finalized;
}

/// `no_frames`: so much is known of it, which MPI need not be able to tell more about.
std::shared_ptr<CommInfo> make_info(MPI_Comm comm, bool no_frames = false) {
  const HeldError error;  // the program's call has its own
  const Calls& mpi = calls();
  // MPICH may return success, and no answer, once a handler of the program's was called.
  int inter = no_frames ? 1 : MPI_UNDEFINED;
  if (!no_frames && mpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  if (inter == MPI_UNDEFINED) return nullptr;
  EndingComm* const ending = EndingComm::of(comm);
  std::shared_ptr<CommInfo> info = ending ? ending->file() : nullptr;
  bool is_kept = info != nullptr;
  if (!is_kept) {
    Attribute* inherited = nullptr;
    int found = 0;
    mpi.Comm_get_attr(comm, keyval(), &inherited, &found);
    is_kept = found != 0;
    info = is_kept ? *inherited : std::make_shared<CommInfo>();
  }
  if (info->comm == MPI_COMM_NULL) {
    info->comm = comm;
    info->no_frames = info->no_frames || inter != 0;
    if (!info->no_frames) info->world_ranks = ranks_in_world(comm);
  }
  if (is_kept) return info;
  if (ending) {  // MPI is going through its attributes
    ending->hold(info);
    return info;
  }
  auto attribute = std::make_unique<Attribute>(info);
  if (mpi.Comm_set_attr(comm, keyval(), attribute.get()) != MPI_SUCCESS) return nullptr;
  attribute.release();
  return info;
}

}  // namespace

std::vector<int> ranks_in_world(MPI_Comm comm) {
  if (!world_exists()) return {};
  const Calls& mpi = calls();
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

namespace {
const Topology no_topology;
}

CommInfo::~CommInfo() {
  const Topology* const topology = topology_.load(std::memory_order_acquire);
  if (topology != &no_topology) delete topology;
}

const Topology* CommInfo::topology() const {
  const Topology* found = topology_.load(std::memory_order_acquire);
  if (!found) {
    // Threads may come at once, and no lock is held while MPI is asked: the first one's counts.
    std::unique_ptr<const Topology> read = read_topology(comm, is_distributed_graph);
    const Topology* const made = read ? read.get() : &no_topology;
    if (topology_.compare_exchange_strong(found, made, std::memory_order_acq_rel)) {
      found = made;
      read.release();  // NOLINT(bugprone-unused-return-value): topology_ has it
    }
  }
  return found == &no_topology ? nullptr : found;
}

int CommInfo::world_rank(int rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < world_ranks.size()
             ? world_ranks[static_cast<std::size_t>(rank)]
             : trace::any_peer;
}

int CommInfo::raise(int code) const {
  if (!freed || world_exists()) {
    calls().Comm_call_errhandler(freed ? MPI_COMM_WORLD : comm, code);
  }
  return code;
}

thread_local EndingComm* EndingComm::innermost_ = nullptr;

EndingComm::EndingComm(const MPI_Comm* comm)
    : outer_(std::exchange(innermost_, this)), comm_(comm ? *comm : MPI_COMM_NULL) {}

EndingComm::~EndingComm() {
  innermost_ = outer_;
  if (held_) set_freed(*held_);
  if (is_filed_) cache->erase(comm_);
}

EndingComm* EndingComm::of(MPI_Comm comm) {
  for (EndingComm* one = innermost_; one; one = one->outer_) {
    if (one->comm_ == comm) return one;
  }
  return nullptr;
}

std::shared_ptr<CommInfo> comm_info(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  return cache->find(comm, [comm] { return make_info(comm); });
}

std::shared_ptr<const CommInfo> glance_at_comm(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  return cache->borrow(comm, [comm] { return make_info(comm); });
}

void carry_no_frames(MPI_Comm comm) {
  cache->find(comm, [comm] { return make_info(comm, true); });
}

thread_local int PrivateDuplicate::depth_ = 0;

thread_local const DuplicateHints* DuplicateHints::innermost_ = nullptr;

DuplicateHints::DuplicateHints(MPI_Comm comm, const Hints& hints)
    : outer_(innermost_), comm_(comm), hints_(hints) {
  innermost_ = this;
}

DuplicateHints::~DuplicateHints() { innermost_ = outer_; }

const Hints* DuplicateHints::given(MPI_Comm comm) {
  return innermost_ && innermost_->comm_ == comm ? &innermost_->hints_ : nullptr;
}

}  // namespace mpress::mpi
