// The schedules of all ranks, looked at with symbolic blocks: do they keep the rules of
// schedule/schedule.hpp, and how much do they move? What is wrong is told as text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.hpp"

namespace schedule_simulator {

using mpress::schedule::Block;
using mpress::schedule::Op;
using mpress::schedule::Schedule;
using mpress::schedule::Task;
using mpress::schedule::Transfer;

inline std::size_t index(int value) { return static_cast<std::size_t>(value); }

/// Which rank holds which block.
class Held {
 public:
  explicit Held(const Task& task)
      : blocks_(task.blocks()), bits_(blocks_ * static_cast<Block>(task.size)) {}
  bool has(int rank, Block block) const { return bits_[at(rank, block)]; }
  void set(int rank, Block block, bool value = true) { bits_[at(rank, block)] = value; }

 private:
  std::size_t at(int rank, Block block) const { return index(rank) * blocks_ + block; }

  Block blocks_;
  std::vector<bool> bits_;
};

struct Volume {
  int rounds = 0;
  Block busiest = 0;  ///< blocks sent, or received, by the rank that has most of either
  Block total = 0;

  bool operator==(const Volume&) const = default;
};

inline std::string text(const Volume& volume) {
  return std::to_string(volume.rounds) + " rounds, busiest " + std::to_string(volume.busiest) +
         ", in all " + std::to_string(volume.total);
}

/// The schedules of all ranks.
struct Plan {
  Plan(const Task& what, const std::function<Schedule(int)>& make) : task(what) {
    for (int rank = 0; rank < task.size; ++rank) ranks.push_back(make(rank));
  }

  Volume volume() const {
    Volume volume{ranks[0].rounds, 0, 0};
    for (const Schedule& schedule : ranks) {
      Block sent = 0, received = 0;
      for (const Transfer& transfer : schedule.sends) sent += transfer.count;
      for (const Transfer& transfer : schedule.receives) received += transfer.count;
      volume.busiest = std::max({volume.busiest, sent, received});
      volume.total += sent;
    }
    return volume;
  }

  /// Blocks that somebody sends to somebody on whom `is_other(sender, reader)`.
  Block volume_where(const std::function<bool(int, int)>& is_other) const {
    Block sum = 0;
    for (int rank = 0; rank < task.size; ++rank)
      for (const Transfer& transfer : ranks[index(rank)].sends)
        if (is_other(rank, transfer.peer)) sum += transfer.count;
    return sum;
  }

  Task task;
  std::vector<Schedule> ranks;
};

/// Goes through all rounds, one after the other.
class Verifier {
 public:
  /// `is_there`: the blocks that the schedules are restricted to; by default all.
  explicit Verifier(const Plan& plan, std::function<bool(Block)> is_there = {})
      : plan_(plan),
        is_there_(std::move(is_there)),
        held_(plan.task),
        owed_(plan.task),
        ends_(plan.ranks.size()) {}

  /// Empty if all rules hold and every rank gets what it wants.
  std::string verify() {
    const Task& task = plan_.task;
    for (int rank = 0; rank < task.size && error_.empty(); ++rank) look_at(rank);
    for (int round = 0; round < plan_.ranks[0].rounds && error_.empty(); ++round) {
      senders_.assign(index(task.size), {});
      bool is_used = false;
      for (int rank = 0; rank < task.size; ++rank) is_used |= send(rank, round);
      for (int rank = 0; rank < task.size && error_.empty(); ++rank) receive(rank, round);
      if (!is_used && !is_there_) fail("nobody sends", 0, round);
    }
    for (int rank = 0; rank < task.size && error_.empty(); ++rank) {
      const Ends& ends = ends_[index(rank)];
      if (ends.wanted != wanted_by(rank)) fail("does not get all that it wants", rank, -1);
      if (ends.owed != 0) fail("keeps what it does not want", rank, -1);
    }
    return error_;
  }

 private:
  struct Ends {
    std::size_t sends = 0;     ///< the first of those to come
    std::size_t receives = 0;  ///< also
    Block wanted = 0;          ///< that came
    Block owed = 0;            ///< to be forwarded
  };
  struct Sender {
    int rank;
    const Transfer* transfer;
  };

  void fail(const char* what, int rank, int round) {
    if (error_.empty())
      error_ = "rank " + std::to_string(rank) + ", round " + std::to_string(round) + ": " + what;
  }

  Block wanted_by(int rank) const {
    const Task& task = plan_.task;
    if (is_there_) {
      Block count = 0;
      for (Block block = 0; block < task.blocks(); ++block)
        count += task.is_wanted(block, rank) && is_there_(block);
      return count;
    }
    const auto others = static_cast<Block>(task.size - 1);
    switch (task.op) {
      case Op::bcast: return rank == task.root ? 0 : task.blocks();
      case Op::scatter: return rank == task.root ? 0 : 1;
      case Op::gather: return rank == task.root ? others : 0;
      default: return others;
    }
  }

  void look_at(int rank) {
    const Schedule& schedule = plan_.ranks[index(rank)];
    if (schedule.rounds != plan_.ranks[0].rounds) fail("other rounds than rank 0", rank, -1);
    for (const auto* transfers : {&schedule.sends, &schedule.receives}) {
      int latest = 0;
      for (const Transfer& transfer : *transfers) {
        const int round = transfer.round;
        if (round < latest || round >= schedule.rounds) fail("not in order", rank, round);
        if (transfer.peer < 0 || transfer.peer >= plan_.task.size || transfer.peer == rank)
          fail("no such peer", rank, round);
        if (transfer.count == 0) fail("an empty transfer", rank, round);
        for (const Block block : schedule.blocks_of(transfer))
          if (block >= plan_.task.blocks()) fail("no such block", rank, round);
        latest = round;
      }
    }
  }

  bool send(int rank, int round) {
    const Schedule& schedule = plan_.ranks[index(rank)];
    Ends& ends = ends_[index(rank)];
    bool is_used = false;
    for (; ends.sends < schedule.sends.size() && schedule.sends[ends.sends].round == round;
         ++ends.sends, is_used = true) {
      const Transfer& transfer = schedule.sends[ends.sends];
      senders_[index(transfer.peer)].push_back({rank, &transfer});
      for (const Block block : schedule.blocks_of(transfer)) {
        if (plan_.task.origin(block) != rank && !held_.has(rank, block))
          fail("sends what it does not have", rank, round);
        if (!owed_.has(rank, block)) continue;
        owed_.set(rank, block, false);
        --ends.owed;
      }
    }
    return is_used;
  }

  void receive(int rank, int round) {
    const Schedule& schedule = plan_.ranks[index(rank)];
    Ends& ends = ends_[index(rank)];
    std::vector<Sender>& senders = senders_[index(rank)];  // ascending
    for (std::size_t i = 1; i < senders.size(); ++i)
      if (senders[i].rank == senders[i - 1].rank) fail("two transfers of one peer", rank, round);
    std::size_t count = 0;
    for (; ends.receives < schedule.receives.size() &&
           schedule.receives[ends.receives].round == round;
         ++ends.receives, ++count) {
      const Transfer& transfer = schedule.receives[ends.receives];
      const auto found =
          std::lower_bound(senders.begin(), senders.end(), transfer.peer,
                           [](const Sender& sender, int peer) { return sender.rank < peer; });
      if (found == senders.end() || found->rank != transfer.peer || !found->transfer)
        return fail("waits for what nobody sends", rank, round);
      const auto sent = plan_.ranks[index(transfer.peer)].blocks_of(*found->transfer);
      const auto expected = schedule.blocks_of(transfer);
      if (!std::equal(sent.begin(), sent.end(), expected.begin(), expected.end()))
        return fail("expects other blocks than its peer sends", rank, round);
      found->transfer = nullptr;
      for (const Block block : expected) take(rank, block, round);
    }
    if (count != senders.size()) fail("is sent what it does not wait for", rank, round);
  }

  void take(int rank, Block block, int round) {
    if (is_there_ && !is_there_(block)) return fail("gets what is not there", rank, round);
    if (plan_.task.origin(block) == rank) return fail("gets its own block", rank, round);
    if (held_.has(rank, block)) return fail("gets a block twice", rank, round);
    held_.set(rank, block);
    if (plan_.task.is_wanted(block, rank)) {
      ++ends_[index(rank)].wanted;
    } else {
      owed_.set(rank, block);
      ++ends_[index(rank)].owed;
    }
  }

  const Plan& plan_;
  std::function<bool(Block)> is_there_;
  Held held_;
  Held owed_;  ///< not wanted, and not yet forwarded
  std::vector<Ends> ends_;
  std::vector<std::vector<Sender>> senders_;
  std::string error_;
};

}  // namespace schedule_simulator
