// What is known of a communicator, made at its first call that could pay.
//
// Making it is an operation: no call that begins it waits, and communicators may be used first in
// different orders by different ranks. All members begin it at the same place in the order of the
// communicator's collective calls.
//
// States (docs/dev/operations.md has them as a table):
// - duplicating: MPI_Comm_idup makes a private communicator, without mpress's attributes, that
//   returns errors; then
// - exchanging: MPI_Iallreduce on it finds the least and the greatest of each fact; then, the same
//   on all members,
// - ready: boards and agreements; or
// - refused: MPI serves the communicator; the private one may still be used.
//
// Members that do not run mpress, or run it without MPI_Init, take no part: such communicators
// have no team (Teams::may_have()).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coll/selection.hpp"
#include "core/hosts.hpp"
#include "core/operation.hpp"
#include "core/progress.hpp"
#include "engine/coll/call_order.hpp"
#include "link/list.hpp"
#include "mpi/job/agreement.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/peek.hpp"
#include "policy/methods.hpp"
#include "schedule/hosts.hpp"

namespace mpress::engine {

/// What each member knows of itself, and tells the others: a number each.
enum class Fact : unsigned char {
  settings,      ///< a hash; where it differs, the team is refused
  hints,         ///< the same of the communicator's hints, without the codec
  codec_hint,    ///< the same of that; then its reductions are errors
  reproducible,  ///< its reductions have the same bits in any order of what is brought
  wants,         ///< 0: refuses
  may_see_gpus,  ///< there is a driver
  gpu_aware,
  has_hook,          ///< MPI calls mpress while it blocks
  gets_on,           ///< what is under way proceeds while MPI blocks: by that hook, or a thread
  has_thread,        ///< a progress thread
  duplicates,        ///< it may make teams by MPI_Comm_idup
  hides_duplicates,  ///< the program's copy callbacks are not called for private ones
  least_chunk,       ///< bytes: it cuts no message shorter; 0: none at all
  measures,          ///< what links are like, in MPI_Init
  learns,            ///< what links are like, from its messages
  sends_frames,      ///< it may compress, or cut, messages to memory of the host
  none_within,  ///< what is encoded with such may gain by messages in host memory, to ranks of its
  mpc_within,   ///< host, by codec; nothing to encode with gains where that is forced
  zfp_within,
  szp_within,
  none_between,  ///< the same to ranks of others
  mpc_between,
  zfp_between,
  szp_between,
  ever_sends_frames,  ///< it may come to do so
  least_framed,       ///< bytes: it sends no frame or header for a shorter message
  has_board,          ///< filled in by the team, as is the key
  key,
  count_
};
constexpr std::size_t fact_count = static_cast<std::size_t>(Fact::count_);

class Facts {
 public:
  std::uint64_t& operator[](Fact fact) { return numbers_[static_cast<std::size_t>(fact)]; }
  std::uint64_t operator[](Fact fact) const { return numbers_[static_cast<std::size_t>(fact)]; }

  std::array<std::uint64_t, fact_count>& numbers() { return numbers_; }
  const std::array<std::uint64_t, fact_count>& numbers() const { return numbers_; }

 private:
  std::array<std::uint64_t, fact_count> numbers_{};
};

class Teams;

class Team : public mpi::Attachment, public std::enable_shared_from_this<Team> {
 public:
  enum class State : unsigned char { duplicating, exchanging, ready, refused };

  State state() const { return state_.load(std::memory_order_acquire); }
  bool is_ready() const { return state() == State::ready; }
  bool is_refused() const { return state() == State::refused; }
  bool is_decided() const { return state() >= State::ready; }

  // Once it is decided:

  /// Why it was refused, for a report: a literal. Null where it was not.
  const char* why_not() const { return why_not_; }

  /// Private to mpress, with the members' ranks; returns errors. MPI_COMM_NULL where MPI could not
  /// make it. A call that MPI has to serve after all is issued here, in the order of calls.
  MPI_Comm comm() const { return comm_; }

  /// Messages of links have tags from 0 to here, this not included; the rest is for agreements and
  /// collective calls.
  std::uint64_t tags() const { return tags_; }

  /// From here on, those of the blocks of collective calls (engine/coll/call_order.hpp).
  int first_block_tag() const { return static_cast<int>(tags_); }

  // Once it is ready:

  /// The least and the greatest of the members' numbers.
  const Facts& lowest() const { return lowest_; }
  const Facts& highest() const { return highest_; }
  bool is_true_for_all(Fact fact) const { return lowest_[fact] != 0; }
  bool is_true_for_any(Fact fact) const { return highest_[fact] != 0; }

  /// Non-blocking agreement among the members; see mpi/job/agreement.hpp. Whoever starts one
  /// adds it to Progress, unless it is over at once.
  Agreements& agreements() { return *agreements_; }

  /// The codec that all members have given the communicator as a hint.
  const std::optional<Spec>& spec() const { return spec_; }

  /// Did members give it different codecs? Then its reductions are errors.
  bool has_different_codecs() const { return has_different_codecs_; }

  /// What members have told each other of the hints that they have given since it was made; while
  /// none of its calls is being decided.
  void set_hints(const std::optional<Spec>& spec, bool are_different, bool is_reproducible) {
    spec_ = spec;
    has_different_codecs_ = are_different;
    own_[Fact::reproducible] = is_reproducible;
  }

  /// Have its reductions the same bits in any order of what members bring? As they have said, by
  /// a hint or by the environment; also before it is ready.
  bool is_reproducible() const { return own_[Fact::reproducible] != 0; }

  /// Who shares a host, among its members. First asked for by the call whose turn it is.
  const schedule::Hosts& hosts() const;

  /// By which algorithms its calls go. For the call whose turn it is.
  policy::MethodChoice& method_choice() const { return method_choice_; }

  // The modes of its collective calls, which engine/coll/route.hpp alone sets, call by call.

  /// What members know of calls of like size. A program may have its fields on devices, and short
  /// sums of the host's beside them.
  struct Mode {
    bool has_devices = false;     ///< a member has such buffers there, as of when they told last
    bool has_had_device = false;  ///< this one has had any
    std::uint64_t calls = 0;      ///< at which they could tell
    AttemptsOfTeam attempts;
  };
  Mode& mode(bool reduces, std::size_t bytes) {
    constexpr int bits_a_class = 3;
    const auto size = static_cast<std::size_t>(std::bit_width(bytes) / bits_a_class);
    return modes_[std::min(size, sizes - 1) * 2 + reduces];
  }

  /// The link of data on devices between members of one host, as they told last: of all pairs' the
  /// slowest.
  link::Kind between_devices() const { return between_devices_; }
  bool has_linked_devices() const { return between_devices_ == link::Kind::peer; }
  /// Does it have memory in which kernels of all these members may work together?
  bool has_memory_of_all() const {
    const link::Attributes* const about = link::attributes_of(between_devices_);
    return about && about->is_memory;
  }
  /// By a new link algorithms are offered anew, in calls of all sizes.
  void set_between_devices(link::Kind kind) {
    if (kind == between_devices_) return;
    for (Mode& mode : modes_) mode.attempts = {};
    between_devices_ = kind;
  }

  /// Links' memory that reductions keep for their next calls (coll/joint/joint_memory); let go of
  /// before links are closed.
  class Kept {
   public:
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept>& kept() { return kept_; }

  /// Do all members know that it is decided, and so are all calls before the next one? Once one
  /// that may wait was. Then decisions that take no agreement are made at once.
  bool is_settled() const { return is_settled_; }
  void settle() { is_settled_ = true; }

  // At any time:

  /// Lets the making proceed; returns whether it is decided. Never waits.
  bool advance();

  /// Its collective calls.
  CallOrder& order() { return order_; }

  /// While somebody holds it, the private communicator stays, also when the program has freed its
  /// own.
  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  /// Do two members share memory of a host?
  bool share_host(int a, int b) const;

  void comm_ends() override;
  void comm_freed() override { let_go(); }

 private:
  friend class Teams;
  class Making;
  class Release;

  Team(Teams& all, std::vector<int> members, const Facts& facts);
  void start(MPI_Comm parent);
  void split(MPI_Comm parent);
  void adopt(MPI_Comm comm);
  void exchange();
  void refuse(const char* why);
  void decide();
  bool free_comm();

  Teams& all_;
  const std::vector<int> members_;  ///< ranks in MPI_COMM_WORLD
  int rank_ = 0;
  std::atomic<State> state_{State::duplicating};
  std::atomic<bool> is_advanced_{false};
  const char* why_not_ = nullptr;
  Facts own_, lowest_, highest_;
  std::array<std::uint64_t, 2 * fact_count> exchanged_{};
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::uint64_t tags_ = 0;
  link::Board* board_ = nullptr;
  std::shared_ptr<Agreements> agreements_;
  CallOrder order_;
  std::atomic<int> holders_{1};  ///< one is the program's communicator
  std::optional<Spec> spec_;
  bool has_different_codecs_ = false;
  mutable std::optional<schedule::Hosts> member_hosts_;
  mutable policy::MethodChoice method_choice_;
  static constexpr std::size_t sizes = 16;
  std::array<Mode, 2 * sizes> modes_;
  std::unique_ptr<Kept> kept_;
  bool is_settled_ = false;
  link::Kind between_devices_ = link::kind_at(0);
};

/// A team stays while this lives.
class TeamHold {
 public:
  explicit TeamHold(Team& team) : team_(team) { team_.hold(); }
  TeamHold(const TeamHold&) = delete;
  TeamHold& operator=(const TeamHold&) = delete;
  ~TeamHold() { team_.let_go(); }

 private:
  Team& team_;
};

/// The teams of this process. Thread-safe, but for open() and close().
class Teams {
 public:
  Teams(Progress& progress, const mpi::Peek& peek) : progress_(progress), peek_(peek) {}

  /// Collective over MPI_COMM_WORLD, in MPI_Init; blocks until the world's team is decided.
  /// `facts`: this rank's, of every communicator. `ranks_a_host`: see open_hosts().
  void open(const link::HostMemory::Nonce& nonce, const Facts& facts, int ranks_a_host = 0);
  bool is_open() const { return world_ != nullptr; }

  /// What all ranks take for the environment's word, also where theirs differ.
  void set_reproducible(bool is_set) {
    facts_[Fact::reproducible] = is_set;
    if (world_) world_->own_[Fact::reproducible] = is_set;
  }

  /// As all ranks know: may private communicators be duplicates, which have a topology?
  void keep_topologies() { keeps_topologies_ = true; }

  /// That of MPI_COMM_WORLD; null unless open.
  const std::shared_ptr<Team>& world() const { return world_; }

  /// That of a communicator, whose making begins where it has none: then all members have to make
  /// this call at the same place in the order of its collective calls. Null where it may have none.
  Team* of(const std::shared_ptr<mpi::CommInfo>& comm);

  /// Has it one that is settled? That of MPI_COMM_WORLD is from MPI_Init on.
  bool is_settled(const mpi::CommInfo& comm) const;

  /// The same in a call that may block, and does so while MPI makes the private communicator. Its
  /// caller has flushed Progress.
  Team* of_blocking(const std::shared_ptr<mpi::CommInfo>& comm);

  /// Whether it may have one, as all its members know without asking: mpress is at work in all of
  /// them, since MPI_Init.
  bool may_have(const mpi::CommInfo& comm) const;

  /// Lets go of what teams have kept, in MPI_Finalize, when nothing of the program's is under
  /// way; before links are closed.
  void drop_kept();

  /// Frees what is private, in MPI_Finalize, when nothing of the program's is under way.
  void close();

  Hosts& hosts() { return hosts_; }

 private:
  friend class Team;

  template <typename Begin>
  Team* of(const std::shared_ptr<mpi::CommInfo>& comm, Begin begin);
  void retire(std::shared_ptr<Agreements> agreements, link::Board* board);
  void sweep();

  Progress& progress_;
  const mpi::Peek& peek_;
  Hosts hosts_;
  Facts facts_;
  std::shared_ptr<Team> world_;
  std::atomic<std::uint64_t> next_key_{0};
  bool keeps_topologies_ = false;

  struct Retired {
    std::shared_ptr<Agreements> agreements;
    link::Board* board;
  };
  std::mutex mutex_;  ///< never held while MPI is called
  std::vector<std::weak_ptr<Team>> all_;
  std::vector<Retired> retired_;  ///< boards that others may still read
};

}  // namespace mpress::engine
