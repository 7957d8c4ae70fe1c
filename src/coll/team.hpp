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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "coll/agreed_facts.hpp"
#include "coll/agreement.hpp"
#include "coll/call_modes.hpp"
#include "coll/call_order.hpp"
#include "coll/facts.hpp"
#include "coll/team_hints.hpp"
#include "config/config.hpp"
#include "core/hosts.hpp"
#include "link/channel/channel.hpp"
#include "schedule/hosts.hpp"

namespace mpress::engine {

class Envelopes;
struct CommSettings;
struct Messaging;

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

  const AgreedFacts& facts() const { return facts_; }

  /// Non-blocking agreement among the members; see coll/agreement.hpp. Whoever starts one adds it
  /// to Progress, unless it is over at once.
  Agreements& agreements() { return *agreements_; }

  /// Members by host. The call whose turn it is asks first.
  const schedule::Hosts& hosts() const;

  /// For the call whose turn it is.
  CallModes& modes() { return modes_; }
  const CallModes& modes() const { return modes_; }

  /// Links' memory that reductions keep for their next calls (coll/symmetric/joint_memory); let go
  /// of before links are closed.
  class Kept {
   public:
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept>& kept() { return kept_; }

  // At any time:

  /// Lets the making proceed; returns whether it is decided. Never waits.
  bool advance();

  /// The hints of its communicator.
  TeamHints& hints() { return hints_; }
  const TeamHints& hints() const { return hints_; }

  CallOrder& order() { return order_; }

  /// For the blocks of one call, under a tag of its own (coll/blocks/envelope.hpp): `messaging` is
  /// this rank's. Both outlive what it returns.
  virtual std::unique_ptr<Envelopes> envelopes(Messaging& messaging, int tag) const = 0;

  /// Of the messages of blocks. They have the hints of the members' communicator, as these were
  /// when take_hints() was called last, before a call begins.
  virtual const CommSettings& settings() const = 0;
  virtual void take_hints() const = 0;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  /// Do two members share memory of a host?
  bool share_host(int a, int b) const;

 protected:
  /// There is a channel between the members, with their ranks. It outlives the team's last
  /// agreement.
  void meet(link::Channel& channel);

  /// MPI made no channel, or the exchange by it failed.
  void refuse(const char* why);

  /// Lets the making of the channel proceed, which ends with meet() or refuse().
  virtual void make_channel() {}

  /// Whoever makes the team holds it from the beginning, and lets go of it; others have a TeamHold.
  void let_go();

  /// Nobody holds the team any more.
  virtual void end() {}

  /// Gives the team's board back once no agreement is under way; false until then. The team uses
  /// its channel no more.
  bool give_back_board();

 private:
  friend class TeamHold;

  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void decide();

  Boards& boards_;
  const std::vector<int> members_;
  const int rank_;
  std::atomic<State> state_{State::waiting};
  std::atomic<bool> is_advanced_{false};
  const char* why_not_ = nullptr;
  Facts own_;
  AgreedFacts facts_;
  TeamHints hints_;
  link::Channel* channel_ = nullptr;
  AgreedFacts::Words exchanged_{};
  link::Channel::Pending exchange_{};
  std::uint64_t tags_ = 0;
  link::Board* board_ = nullptr;
  std::shared_ptr<Agreements> agreements_;
  CallOrder order_;
  CallModes modes_;
  std::atomic<int> holders_{1};
  mutable std::optional<schedule::Hosts> member_hosts_;
  std::unique_ptr<Kept> kept_;
};

/// The codec of a team's calls that name none: the one that members gave the communicator, else the
/// environment's.
inline Spec spec_of(const Config& config, const Team& team) {
  return team.hints().spec().value_or(config.spec);
}

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
