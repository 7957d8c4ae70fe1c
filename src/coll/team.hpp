// Teams: the members of a communicator, and all that these know of each other.
//
// Making a team is an operation: no call that begins it waits, and communicators may be used first
// in different orders by different ranks. All members begin it at the same place in the order of
// the communicator's collective calls.
//
// States (docs/dev/operations.md has them as a table):
// - waiting: for the channel between the members, which whoever makes the team has (mpi/job/teams);
// - exchanging: the least and the greatest of each fact are found by it; then, the same on all
//   members,
// - ready: boards and agreements; or
// - refused: MPI serves the communicator; the channel may still be used.
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
#include <vector>

#include "codec/spec.hpp"
#include "coll/agreement.hpp"
#include "coll/call_order.hpp"
#include "coll/facts.hpp"
#include "coll/selection.hpp"
#include "core/hosts.hpp"
#include "link/channel/channel.hpp"
#include "link/list.hpp"
#include "policy/methods.hpp"
#include "schedule/hosts.hpp"

namespace mpress::engine {

/// Boards of this rank's teams, and the hosts of the job, on which they lie. Thread-safe, once the
/// hosts are open.
class Boards {
 public:
  Hosts& hosts() { return hosts_; }

  /// No two teams of which `rank` is the first member get the same; never 0.
  std::uint64_t next_key(int rank) {
    return (static_cast<std::uint64_t>(rank) + 1) << 40 | next_key_++;
  }

  /// A team is gone, and other members may still read its board.
  void retire(std::shared_ptr<Agreements> agreements, link::Board* board);

  /// Frees the boards that nobody reads any more.
  void sweep();

 private:
  struct Retired {
    std::shared_ptr<Agreements> agreements;
    link::Board* board;
  };

  Hosts hosts_;
  std::atomic<std::uint64_t> next_key_{0};
  std::mutex mutex_;
  std::vector<Retired> retired_;
};

class Team : public std::enable_shared_from_this<Team> {
 public:
  enum class State : unsigned char { waiting, exchanging, ready, refused };

  /// `members`: their ranks in the job; this one is `rank` among them. `facts`: this member's.
  /// `boards` outlives it.
  Team(Boards& boards, std::vector<int> members, int rank, const Facts& facts);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool is_ready() const { return state() == State::ready; }
  bool is_refused() const { return state() == State::refused; }
  bool is_decided() const { return state() >= State::ready; }

  // Once it is decided:

  /// Why it was refused, for a report: a literal. Null where it was not.
  const char* why_not() const { return why_not_; }

  /// Messages of links have tags of the channel from 0 to here, this not included; the rest is for
  /// agreements and collective calls.
  std::uint64_t tags() const { return tags_; }

  /// From here on, those of the blocks of collective calls (coll/call_order.hpp).
  int first_block_tag() const { return static_cast<int>(tags_); }

  // Once it is ready:

  /// The least and the greatest of the members' numbers.
  const Facts& lowest() const { return lowest_; }
  const Facts& highest() const { return highest_; }
  bool is_true_for_all(Fact fact) const { return lowest_[fact] != 0; }
  bool is_true_for_any(Fact fact) const { return highest_[fact] != 0; }

  /// Non-blocking agreement among the members; see coll/agreement.hpp. Whoever starts one adds it
  /// to Progress, unless it is over at once.
  Agreements& agreements() { return *agreements_; }

  /// The codec that all members have given the communicator as a hint.
  const std::optional<Spec>& spec() const { return spec_; }

  /// Did members give it different codecs? Then its reductions are errors.
  bool has_different_codecs() const { return has_different_codecs_; }

  /// Hints as members have exchanged them. Not while a call of the team is being decided.
  void set_hints(const std::optional<Spec>& spec, bool are_different, bool is_reproducible);

  /// Have its reductions the same bits in any order of what members bring? As they have said, by
  /// a hint or by the environment; also before it is ready.
  bool is_reproducible() const { return own_[Fact::reproducible] != 0; }

  /// Members by host. The call whose turn it is asks first.
  const schedule::Hosts& hosts() const;

  /// By which algorithms its calls go. For the call whose turn it is.
  policy::MethodChoice& method_choice() const { return method_choice_; }

  // The modes of its collective calls, which engine/coll/route.hpp alone sets, call by call.

  /// The mode of calls of like size: a program may have its fields on devices, and short sums in
  /// memory of the host beside them.
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
  bool has_memory_of_all() const;
  /// By a new link algorithms are offered anew, in calls of all sizes.
  void set_between_devices(link::Kind kind);

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

  /// The channel stays while somebody holds the team. Whoever makes a team holds it first.
  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  /// Do two members share memory of a host?
  bool share_host(int a, int b) const;

  // Making it:

  /// There is a channel between the members, with their ranks. It outlives the team's last
  /// agreement.
  void meet(link::Channel& channel);

  /// MPI made no channel, or the exchange by it failed.
  void refuse(const char* why);

 protected:
  /// Lets the making of the channel proceed, which ends with meet() or refuse().
  virtual void make_channel() {}

  /// Nobody holds the team any more.
  virtual void end() {}

  /// Gives the team's board back once no agreement is under way; false until then. The team uses
  /// its channel no more.
  bool give_back_board();

 private:
  void decide();

  Boards& boards_;
  const std::vector<int> members_;
  const int rank_;
  std::atomic<State> state_{State::waiting};
  std::atomic<bool> is_advanced_{false};
  const char* why_not_ = nullptr;
  Facts own_, lowest_, highest_;
  link::Channel* channel_ = nullptr;
  std::array<std::uint64_t, 2 * fact_count> exchanged_{};
  link::Channel::Pending exchange_{};
  std::uint64_t tags_ = 0;
  link::Board* board_ = nullptr;
  std::shared_ptr<Agreements> agreements_;
  CallOrder order_;
  std::atomic<int> holders_{1};
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

/// A team's channel stays while this lives.
class TeamHold {
 public:
  explicit TeamHold(Team& team) : team_(team) { team_.hold(); }
  TeamHold(const TeamHold&) = delete;
  TeamHold& operator=(const TeamHold&) = delete;
  ~TeamHold() { team_.let_go(); }

 private:
  Team& team_;
};

}  // namespace mpress::engine
