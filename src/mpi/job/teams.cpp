#include "mpi/job/teams.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/one_at_a_time.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/objects/tags.hpp"
#include "mpi/open_hosts.hpp"
#include "mpi/progress_hook.hpp"
#include "trace/record.hpp"

namespace mpress::engine {
namespace {

using State = Team::State;

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

/// Completes a request that may be looked at from within MPI's progress engine.
bool is_complete(const mpi::Peek& peek, MPI_Request& request, int& code) {
  if (peek.is_possible() && !peek.is_complete(request)) return false;
  int done = 0;
  code = mpi::test(&request, &done, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS || done != 0;
}

}  // namespace

class Team::Making : public Operation {
 public:
  explicit Making(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  bool advance() override { return team_->advance(); }
  bool needs_host() const override { return false; }  // it needs all members' calls
  bool may_run_in_hook() const override { return true; }

 private:
  const std::shared_ptr<Team> team_;
};

/// Waits for what is under way when the program has freed the communicator.
class Team::Release : public Operation {
 public:
  explicit Release(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  bool advance() override { return team_->free_comm(); }
  bool needs_host() const override { return false; }

 private:
  const std::shared_ptr<Team> team_;
};

Team::Team(Teams& all, std::vector<int> members, const Facts& facts)
    : all_(all), members_(std::move(members)), own_(facts) {}

bool Team::share_host(int a, int b) const {
  return all_.hosts_.leader(world_rank(a)) == all_.hosts_.leader(world_rank(b));
}

const schedule::Hosts& Team::hosts() const {
  if (!member_hosts_) {
    std::vector<int> leaders;
    for (const int member : members_) leaders.push_back(all_.hosts_.leader(member));
    member_hosts_.emplace(leaders);
  }
  return *member_hosts_;
}

/// Begins with a private duplicate. MPI copies attributes in the call itself.
void Team::start(MPI_Comm parent) {
  mpi::calls().Comm_rank(parent, &rank_);
  const mpi::PrivateDuplicate without_attributes;
  const mpi::HeldError error;  // MPI serves the communicator then
  if (error.code(mpi::calls().Comm_idup(parent, &comm_, &request_)) == MPI_SUCCESS) return;
  comm_ = MPI_COMM_NULL;
  refuse(no_communicator);
}

/// Begins with a private communicator that MPI makes at once, and blocks meanwhile.
void Team::split(MPI_Comm parent) {
  int rank = 0;
  mpi::calls().Comm_rank(parent, &rank);
  MPI_Comm made = MPI_COMM_NULL;
  const mpi::PrivateDuplicate without_attributes;
  const mpi::HeldError error;
  int topology = MPI_UNDEFINED;
  if (all_.keeps_topologies_) mpi::calls().Topo_test(parent, &topology);
  // What MPI serves there of a neighbourhood's calls needs the topology, which a duplicate has.
  const int code = topology == MPI_UNDEFINED ? mpi::calls().Comm_split(parent, 0, rank, &made)
                                             : mpi::calls().Comm_dup(parent, &made);
  if (error.code(code) == MPI_SUCCESS) return adopt(made);
  refuse(no_communicator);
}

/// Begins with a communicator that is there.
void Team::adopt(MPI_Comm comm) {
  comm_ = comm;
  mpi::calls().Comm_rank(comm, &rank_);
  exchange();
}

void Team::exchange() {
  mpi::calls().Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  board_ = all_.hosts_.take_board();
  own_[Fact::has_board] = board_ != nullptr;
  // No two first members give the same key; it is never 0.
  own_[Fact::key] =
      rank_ == 0 ? (static_cast<std::uint64_t>(members_[0]) + 1) << 40 | all_.next_key_++ : 0;
  for (std::size_t i = 0; i < fact_count; ++i) {
    exchanged_[i] = own_.numbers()[i];
    exchanged_[fact_count + i] = ~own_.numbers()[i];
  }
  const int code = mpi::buffer_calls().Iallreduce(MPI_IN_PLACE, exchanged_.data(),
                                                  static_cast<int>(exchanged_.size()), MPI_UINT64_T,
                                                  MPI_MAX, comm_, &request_);
  if (code != MPI_SUCCESS) return refuse("MPI exchanged nothing on its private communicator");
  state_.store(State::exchanging, std::memory_order_release);
}

void Team::refuse(const char* why) {
  why_not_ = why;
  state_.store(State::refused, std::memory_order_release);
}

void Team::decide() {
  for (std::size_t i = 0; i < fact_count; ++i) {
    highest_.numbers()[i] = exchanged_[i];
    lowest_.numbers()[i] = ~exchanged_[fact_count + i];
  }
  const auto differs = [&](Fact fact) { return lowest_[fact] != highest_[fact]; };
  if (!is_true_for_all(Fact::wants)) {
    why_not_ = "a rank does not want it";
  } else if (differs(Fact::settings)) {
    why_not_ = "ranks run with different settings";
  } else if (differs(Fact::hints) || differs(Fact::codec_hint)) {
    why_not_ = "ranks gave the communicator different hints";
    has_different_codecs_ = has_different_codecs_ || differs(Fact::codec_hint);
  }
  const std::uint64_t tags = mpi::tags_of_world();
  tags_ = tags - Agreements::tags - CallOrder::tags;
  const bool is_shared = is_true_for_all(Fact::has_board);
  if (board_ && (!is_shared || why_not_)) {
    all_.hosts_.free_board(std::exchange(board_, nullptr));
  }
  if (!why_not_) {
    const int first_tag = first_block_tag() + static_cast<int>(CallOrder::tags);
    agreements_ = std::make_shared<Agreements>(all_.hosts_, all_.peek_, comm_, first_tag, members_,
                                               rank_, board_, highest_[Fact::key]);
  }
  state_.store(why_not_ ? State::refused : State::ready, std::memory_order_release);
}

bool Team::advance() {
  if (is_decided()) return true;
  const OneAtATime turn(is_advanced_);
  if (!turn) return false;
  int code = MPI_SUCCESS;
  if (state() == State::duplicating && is_complete(all_.peek_, request_, code)) {
    if (code == MPI_SUCCESS) {
      exchange();
    } else {
      comm_ = MPI_COMM_NULL;
      refuse(no_communicator);
    }
  }
  if (state() == State::exchanging && is_complete(all_.peek_, request_, code)) {
    if (code == MPI_SUCCESS) {
      decide();
    } else {
      refuse("the exchange on its private communicator failed");
    }
  }
  return is_decided();
}

/// Returns whether what is private is free, or will be by sweep().
bool Team::free_comm() {
  if (!is_decided() || (agreements_ && !agreements_->idle())) return false;
  if (mpi::in_progress_hook()) return false;  // MPI_Comm_free may let MPI proceed
  if (comm_ != MPI_COMM_NULL) mpi::calls().Comm_free(&comm_);
  if (board_) all_.retire(agreements_, std::exchange(board_, nullptr));
  return true;
}

void Team::comm_ends() {
#if defined(OPEN_MPI)
  // It goes on to use the communicator that it duplicates. All members have begun, or
  // MPI_Comm_free, which is collective, could not have been called.
  while (state() == State::duplicating) advance();
#endif
}

void Team::let_go() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  auto release = std::make_shared<Release>(shared_from_this());
  if (!release->advance()) all_.progress_.add(std::move(release));
}

void Teams::open(const link::HostMemory::Nonce& nonce, const Facts& facts, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  facts_ = facts;
  open_hosts(hosts_, nonce, ranks_a_host);
  int rank = 0;
  mpi.Comm_rank(MPI_COMM_WORLD, &rank);
  // Not a duplicate, which would have attributes of whoever came first.
  MPI_Comm comm = MPI_COMM_NULL;
  if (mpi.Comm_split(MPI_COMM_WORLD, 0, rank, &comm) != MPI_SUCCESS) return;
  world_.reset(new Team(*this, mpi::ranks_in_world(comm), facts));
  world_->adopt(comm);
  progress_.wait_until([&] { return world_->advance(); });
}

bool Teams::may_have(const mpi::CommInfo& comm) const {
  if (comm.attached()) return !comm.freed;
  // One rank has nobody to talk to; and in MPICH 5.0, MPI_Comm_idup for one rank never returns to
  // whoever lets MPI proceed while another duplicate is under way.
  return is_open() && !comm.no_frames && !comm.freed && comm.world_ranks.size() > 1 &&
         std::find(comm.world_ranks.begin(), comm.world_ranks.end(), trace::any_peer) ==
             comm.world_ranks.end();
}

bool Teams::is_settled(const mpi::CommInfo& comm) const {
  if (comm.comm == MPI_COMM_WORLD) return is_open();
  const auto* const team = static_cast<const Team*>(comm.attached());
  return team && team->is_settled();
}

Team* Teams::of(const std::shared_ptr<mpi::CommInfo>& comm) {
  return of(comm, [](Team& made, MPI_Comm parent) { made.start(parent); });
}

Team* Teams::of_blocking(const std::shared_ptr<mpi::CommInfo>& comm) {
  // MPICH 5.0 fails an assertion of its own (contextid.c) where a thread is in MPI_Comm_idup and
  // others make communicators. So what may block does.
  return of(comm, [](Team& made, MPI_Comm parent) { made.split(parent); });
}

template <typename Begin>
Team* Teams::of(const std::shared_ptr<mpi::CommInfo>& comm, Begin begin) {
  if (mpi::Attachment* attached = comm->attached()) return static_cast<Team*>(attached);
  if (!may_have(*comm)) return nullptr;
  sweep();
  std::shared_ptr<Team> made;
  const bool is_reproducible = comm->hints.reproducible(facts_[Fact::reproducible] != 0);
  if (comm->comm == MPI_COMM_WORLD) {
    made = world_;
    made->own_[Fact::reproducible] = is_reproducible;
  } else {
    Facts facts = facts_;
    facts[Fact::reproducible] = is_reproducible;
    const mpi::Hints hints = comm->hints.get();
    using Shared = mpi::CommHints::Shared;
    const Shared shared = comm->hints.shared_codec();
    facts[Fact::hints] = hash_of(hints);
    const bool is_told = shared != Shared::untold;
    facts[Fact::codec_hint] = hints.codec && !is_told ? hash_of(hints.codec->text) : 0;
    made.reset(new Team(*this, comm->world_ranks, facts));
    made->has_different_codecs_ = shared == Shared::different;
    if (hints.codec && shared != Shared::different) made->spec_ = hints.codec->value;
    begin(*made, comm->comm);
    progress_.add(std::make_shared<Team::Making>(made));
    std::lock_guard lock(mutex_);
    all_.push_back(made);
  }
  comm->attach(made);
  return made.get();
}

void Teams::retire(std::shared_ptr<Agreements> agreements, link::Board* board) {
  {
    std::lock_guard lock(mutex_);
    retired_.push_back({std::move(agreements), board});
  }
  sweep();
}

void Teams::sweep() {
  std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](const Retired& retired) {
    if (!retired.agreements->may_release()) return false;
    hosts_.free_board(retired.board);
    return true;
  });
  std::erase_if(all_, [](const auto& team) { return team.expired(); });
}

void Teams::drop_kept() {
  std::lock_guard lock(mutex_);
  for (const auto& one : all_) {
    if (const std::shared_ptr<Team> team = one.lock()) team->kept().reset();
  }
  if (world_) world_->kept().reset();
}

void Teams::close() {
  std::vector<std::weak_ptr<Team>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(all_);
  }
  for (const auto& one : all) {
    const std::shared_ptr<Team> team = one.lock();
    if (team && team->is_decided() && team->comm_ != MPI_COMM_NULL) {
      mpi::calls().Comm_free(&team->comm_);
    }
  }
  if (world_ && world_->comm_ != MPI_COMM_NULL) mpi::calls().Comm_free(&world_->comm_);
}

}  // namespace mpress::engine
