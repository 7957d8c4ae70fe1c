// Agreeing on a few numbers among the members of a team, without waiting.
//
// Within a host it takes a board a member (link/board.hpp): no message, no call of the system's.
// Across hosts the first member of each host speaks for it.
//
// States (docs/dev/operations.md has them as a table):
// - queued, until all members of the host have done the agreement that used its slot before;
// - said: the own contribution is there. One host: until all members' stamps are. Several: the
//   first member of each waits for those of its own host, the others for what it tells;
// - across: the first members of all hosts fold in those above the largest power of two, double
//   recursively, fold out, and tell their hosts;
// - over: `done` of the board counts it, in order.
//
// A member that is late only makes the others wait. One whose process has ended makes the first
// agreement fail that it did not contribute to, on all members; of another host's first member the
// channel has to tell that, or ends the job, or the launcher does. After one has failed, so do all
// that follow.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/hosts.hpp"
#include "core/operation.hpp"
#include "link/channel/channel.hpp"

namespace mpress::engine {

/// How the members' values of a word become one.
enum class Combine : unsigned char { bit_and, bit_or, min, max, sum };

struct Word {
  Combine combine;
  std::uint64_t value;
};

class Agreements;

/// Started by Agreements; over when its result is there. A blocking caller advances until then.
class Agreement : public Operation {
 public:
  bool advance() override;
  bool may_run_in_hook() const override { return true; }

  /// The result, by word; for gather() by member, then by word. Empty where it failed: a member
  /// has ended, or members gave other words than others. Once advance() returned true.
  std::span<const std::uint64_t> result() const { return result_; }
  bool failed() const { return failed_; }

 private:
  friend class Agreements;
  enum class State : unsigned char { queued, said, across, over };

  std::shared_ptr<Agreements> all_;
  std::atomic<bool> ended_{false};  ///< the result may be read
  State state_ = State::queued;
  bool failed_ = false;
  bool gathers_ = false;
  std::uint64_t number_ = 0;
  std::uint64_t shape_ = 0;  ///< count and combinations, to be the same for all
  std::size_t count_ = 0;
  std::array<Word, link::Board::most_words> words_;
  std::vector<std::uint64_t> result_;

  // Across hosts.
  static constexpr int before_first = -1;
  int step_ = before_first;
  std::vector<std::uint64_t> out_, in_;  ///< a message: failed, shape, then the words
  std::optional<link::Channel::Pending> sending_, receiving_;
};

/// The agreements of one team. Thread-safe. One thread at a time advances them, and uses the
/// channel meanwhile; nobody waits for that thread.
class Agreements : public std::enable_shared_from_this<Agreements> {
 public:
  static constexpr std::size_t most_words = link::Board::most_words;
  /// Tags from the first on are taken, of the channel.
  static constexpr int tags = 1024;

  /// `channel`: between the members; `first_tag`: of those for agreements. `members`: ranks of the
  /// job, by rank in the team, of which this is `rank`. `board`: of this process, or null; where
  /// one member has none, none has. `key`: the team's.
  Agreements(Hosts& hosts, link::Channel& channel, int first_tag, const std::vector<int>& members,
             int rank, link::Board* board, std::uint64_t key);
  Agreements(const Agreements&) = delete;
  Agreements& operator=(const Agreements&) = delete;

  /// Starts one; all members start the same ones, with the same combinations, in the same order,
  /// and may be late by any time. Up to `most_words` words. Never waits; whoever wants the result
  /// advances what it returns.
  std::shared_ptr<Agreement> combine(std::span<const Word> words);

  /// All members' values, each member's `values` after those of the one before it. Where the
  /// team spans hosts: up to `link::Board::most_results` values together.
  std::shared_ptr<Agreement> gather(std::span<const std::uint64_t> values);

  /// The most values a member that gather() may be asked for.
  std::size_t most_gathered() const;

  /// Is none under way?
  bool idle() const { return under_way_.load(std::memory_order_acquire) == 0; }

  /// Has every other member of this host done with all agreements? Then nobody reads this
  /// process's board any more. Only while idle(), when none will be started.
  bool may_release();

  bool spans_hosts() const { return leaders_.size() > 1; }

 private:
  friend class Agreement;

  struct Member {
    int rank;  ///< in the team
    int world_rank;
    link::Board* board = nullptr;  ///< once it has been found
    bool is_gone = false;          ///< its process has ended
  };

  std::shared_ptr<Agreement> start(std::span<const Word> words, bool gathers);
  void advance();
  bool say(Agreement& one);
  bool hear(Agreement& one);
  bool hear_first(Agreement& one);
  bool go_across(Agreement& one);
  void tell(const Agreement& one);
  void add(Agreement& one, const Member& member, const std::uint64_t* values) const;
  void fold(Agreement& one) const;
  bool exchange(Agreement& one, int to, int from);
  bool is_over(Agreement& one, std::optional<link::Channel::Pending>& pending);
  bool advance_one(Agreement& one);
  link::Board* board_of(Member& member);
  bool is_gone(Member& member);
  bool is_leader() const { return here_.front().rank == rank_; }
  bool is_shared() const { return own_ != nullptr; }

  Hosts& hosts_;
  link::Channel& channel_;
  const int first_tag_;
  const int rank_;
  const std::uint64_t key_;
  link::Board* const own_;
  std::size_t size_ = 0;
  std::vector<Member> here_;  ///< of this host, this process included, by rank
  std::vector<int> leaders_;  ///< the first member of each host, by rank
  int own_host_ = 0;          ///< in leaders_
  bool is_broken_ = false;    ///< one has failed: what follows does, too
  unsigned looks_ = 0;
  std::deque<std::shared_ptr<Agreement>> queue_;  ///< in order; the first is not over
  std::atomic<bool> is_advanced_{false};          ///< what is above belongs to who set it

  std::mutex mutex_;  ///< never held while the channel is used
  std::uint64_t started_ = 0;
  std::vector<std::shared_ptr<Agreement>> new_;
  std::atomic<std::size_t> under_way_{0};  ///< in new_ and in queue_
};

}  // namespace mpress::engine
