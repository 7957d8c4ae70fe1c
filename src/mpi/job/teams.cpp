#include "mpi/job/teams.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "mpi/error_handlers.hpp"
#include "mpi/objects/tags.hpp"
#include "mpi/open_hosts.hpp"
#include "mpi/progress_hook.hpp"
#include "trace/record.hpp"

namespace mpress::engine {
namespace {

constexpr const char* no_communicator = "MPI made no private communicator";

/// The same on all ranks: FNV-1a.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Of all but the codec.
std::uint64_t hash_of(const mpi::Hints& hints) {
  std::string text;
  if (hints.threshold) text += " threshold=" + hints.threshold->text;
  if (hints.chunk) text += " chunk=" + hints.chunk->text;
  if (hints.reproducible) text += " reproducible=" + hints.reproducible->text;
  return hash_of(text);
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  mpi::calls().Comm_rank(comm, &rank);
  return rank;
}

}  // namespace

class CommTeam::Making : public Operation {
 public:
  explicit Making(std::shared_ptr<CommTeam> team) : team_(std::move(team)) {}
  bool advance() override { return team_->advance(); }
  bool needs_host() const override { return false; }  // it needs all members' calls
  bool may_run_in_hook() const override { return true; }

 private:
  const std::shared_ptr<CommTeam> team_;
};

/// Waits for what is under way when the program has freed the communicator.
class CommTeam::Release : public Operation {
 public:
  explicit Release(std::shared_ptr<CommTeam> team) : team_(std::move(team)) {}
  bool advance() override { return team_->free_comm(); }
  bool needs_host() const override { return false; }

 private:
  const std::shared_ptr<CommTeam> team_;
};

CommTeam::CommTeam(Teams& all, MPI_Comm parent, std::vector<int> members, const Facts& facts)
    : Team(all.boards_, std::move(members), rank_in(parent), facts), all_(all) {}

/// Of the private communicator.
mpi::CommInfo& CommTeam::info() const {
  mpi::CommInfo* known = info_.load(std::memory_order_acquire);
  if (!known) {
    known = mpi::comm_info(comm_).get();
    if (!known) mpi::fatal("MPI does not know a private communicator");
    info_.store(known, std::memory_order_release);
  }
  return *known;
}

const CommSettings& CommTeam::settings() const { return info(); }

void CommTeam::take_hints() const {
  const mpi::Hints hints = of_ ? of_->hints.get() : mpi::Hints{};
  if (!hints.empty()) info().hints.update(hints);
}

std::shared_ptr<CommTeam> CommTeam::self() {
  return std::static_pointer_cast<CommTeam>(shared_from_this());
}

/// Begins with a private duplicate. MPI copies attributes in the call itself.
void CommTeam::duplicate(MPI_Comm parent) {
  const mpi::PrivateDuplicate without_attributes;
  const mpi::HeldError error;  // MPI serves the communicator then
  if (error.code(mpi::calls().Comm_idup(parent, &comm_, &request_)) == MPI_SUCCESS) return;
  comm_ = MPI_COMM_NULL;
  refuse(no_communicator);
}

/// Begins with a private communicator that MPI makes at once, and blocks meanwhile.
void CommTeam::split(MPI_Comm parent) {
  MPI_Comm made = MPI_COMM_NULL;
  const mpi::PrivateDuplicate without_attributes;
  const mpi::HeldError error;
  int topology = MPI_UNDEFINED;
  if (all_.keeps_topologies_) mpi::calls().Topo_test(parent, &topology);
  // What MPI serves there of a neighbourhood's calls needs the topology, which a duplicate has.
  const int code = topology == MPI_UNDEFINED ? mpi::calls().Comm_split(parent, 0, rank(), &made)
                                             : mpi::calls().Comm_dup(parent, &made);
  if (error.code(code) == MPI_SUCCESS) return adopt(made);
  refuse(no_communicator);
}

/// Begins with a communicator that is there.
void CommTeam::adopt(MPI_Comm comm) {
  comm_ = comm;
  mpi::calls().Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  channel_.open(comm_, mpi::tags_of_world());
  meet(channel_);
}

/// The request may be looked at from within MPI's progress engine.
void CommTeam::make_channel() {
  if (all_.peek_.is_possible() && !all_.peek_.is_complete(request_)) return;
  int done = 0;
  const int code = mpi::test(&request_, &done, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) {
    comm_ = MPI_COMM_NULL;
    refuse(no_communicator);
  } else if (done) {
    adopt(comm_);
  }
}

/// Returns whether what is private is free, or will be by Boards::sweep().
bool CommTeam::free_comm() {
  if (mpi::in_progress_hook() || !give_back_board())
    return false;  // MPI_Comm_free may let MPI proceed
  if (comm_ != MPI_COMM_NULL) mpi::calls().Comm_free(&comm_);
  return true;
}

void CommTeam::comm_ends() {
#if defined(OPEN_MPI)
  // It goes on to use the communicator that it duplicates. All members have begun, or
  // MPI_Comm_free, which is collective, could not have been called.
  while (state() == State::waiting) advance();
#endif
}

void CommTeam::end() {
  auto release = std::make_shared<Release>(self());
  if (!release->advance()) all_.progress_.add(std::move(release));
}

void Teams::open(const link::HostMemory::Nonce& nonce, const Facts& facts, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  facts_ = facts;
  open_hosts(hosts(), nonce, ranks_a_host);
  // Not a duplicate, which would have attributes of whoever came first.
  MPI_Comm comm = MPI_COMM_NULL;
  if (mpi.Comm_split(MPI_COMM_WORLD, 0, rank_in(MPI_COMM_WORLD), &comm) != MPI_SUCCESS) return;
  world_.reset(new CommTeam(*this, comm, mpi::ranks_in_world(comm), facts));
  world_->adopt(comm);
  progress_.wait_until([&] { return world_->advance(); });
}

void Teams::set_reproducible(bool is_set) {
  facts_[Fact::reproducible] = is_set;
  if (world_) world_->hints().set_reproducible(is_set);
}

bool Teams::may_have(const mpi::CommInfo& comm) const {
  if (comm.attached()) return !comm.freed;
  // One rank has nobody to talk to; and in MPICH 5.0, MPI_Comm_idup for one rank never returns to
  // whoever lets MPI proceed while another duplicate is under way.
  return is_open() && !comm.no_frames && !comm.freed && comm.world_ranks.size() > 1 &&
         std::find(comm.world_ranks.begin(), comm.world_ranks.end(), trace::any_peer) ==
             comm.world_ranks.end();
}

Team* Teams::made_for(const mpi::CommInfo& comm) { return static_cast<CommTeam*>(comm.attached()); }

bool Teams::is_settled(const mpi::CommInfo& comm) const {
  if (comm.comm == MPI_COMM_WORLD) return is_open();
  Team* const team = made_for(comm);
  return team && team->order().is_settled();
}

Team* Teams::of(const std::shared_ptr<mpi::CommInfo>& comm) {
  return of(comm, [](CommTeam& made, MPI_Comm parent) { made.duplicate(parent); });
}

Team* Teams::of_blocking(const std::shared_ptr<mpi::CommInfo>& comm) {
  // MPICH 5.0 fails an assertion of its own (contextid.c) where a thread is in MPI_Comm_idup and
  // others make communicators. So what may block does.
  return of(comm, [](CommTeam& made, MPI_Comm parent) { made.split(parent); });
}

template <typename Begin>
Team* Teams::of(const std::shared_ptr<mpi::CommInfo>& comm, Begin begin) {
  if (Team* const made = made_for(*comm)) return made;
  if (!may_have(*comm)) return nullptr;
  boards_.sweep();
  std::shared_ptr<CommTeam> made;
  const bool is_reproducible = comm->hints.reproducible(facts_[Fact::reproducible] != 0);
  if (comm->comm == MPI_COMM_WORLD) {
    made = world_;
    made->hints().set_reproducible(is_reproducible);
  } else {
    Facts facts = facts_;
    const mpi::Hints hints = comm->hints.get();
    using Shared = mpi::CommHints::Shared;
    const Shared shared = comm->hints.shared_codec();
    facts[Fact::hints] = hash_of(hints);
    facts[Fact::reproducible] = is_reproducible;
    const bool is_known = shared != Shared::unknown;
    facts[Fact::codec_hint] = hints.codec && !is_known ? hash_of(hints.codec->text) : 0;
    made.reset(new CommTeam(*this, comm->comm, comm->world_ranks, facts));
    const bool are_different = shared == Shared::different;
    const bool has_spec = hints.codec && !are_different;
    made->hints().set_codec(has_spec ? std::optional(hints.codec->value) : std::nullopt,
                            are_different);
    begin(*made, comm->comm);
    progress_.add(std::make_shared<CommTeam::Making>(made));
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& team) { return team.expired(); });
    all_.push_back(made);
  }
  made->of_ = comm.get();
  comm->attach(made);
  return made.get();
}

void Teams::drop_kept() {
  std::lock_guard lock(mutex_);
  for (const auto& one : all_) {
    if (const std::shared_ptr<CommTeam> team = one.lock()) team->kept().reset();
  }
  if (world_) world_->kept().reset();
}

void Teams::close() {
  std::vector<std::weak_ptr<CommTeam>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(all_);
  }
  for (const auto& one : all) {
    const std::shared_ptr<CommTeam> team = one.lock();
    if (team && team->is_decided() && team->comm_ != MPI_COMM_NULL) {
      mpi::calls().Comm_free(&team->comm_);
    }
  }
  if (world_ && world_->comm_ != MPI_COMM_NULL) mpi::calls().Comm_free(&world_->comm_);
}

}  // namespace mpress::engine
