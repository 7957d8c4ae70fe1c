// The schedules of all ranks of a neighbourhood, run round by round with symbolic blocks: do both
// ends of each transfer agree, does a rank have what it sends, does each block come once, where it
// is wanted or passed on, and nowhere else? Sparse, so that ten thousand ranks take a second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/neighbourhoods/neighbour_sums.hpp"
#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace neighbourhood_simulator {

using mpress::schedule::Block;
using mpress::schedule::Grid;
using mpress::schedule::Neighbourhood;
using mpress::schedule::Schedule;
using mpress::schedule::SumSchedule;
using mpress::schedule::Transfer;

inline std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

struct Volume {
  int rounds = 0;
  std::size_t messages = 0;  ///< of all ranks
  std::size_t blocks = 0;

  bool operator==(const Volume&) const = default;
};

/// A block that is to come to a rank.
struct Wanted {
  Block block;
  int origin;
  int rank;
};

/// Both ends of all transfers, by round; an error as text.
struct Meeting {
  int from, to;
  const Transfer* send;
  const Transfer* receive;
};

inline std::string meet(const std::vector<Schedule>& ranks,
                        std::vector<std::vector<Meeting>>& rounds) {
  std::map<std::tuple<int, int, int>, Meeting> meetings;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (ranks[r].rounds != ranks[0].rounds) return "ranks have different numbers of rounds";
    for (const Transfer& send : ranks[r].sends)
      if (!meetings
               .emplace(std::tuple(send.round, rank, send.peer),
                        Meeting{rank, send.peer, &send, nullptr})
               .second)
        return "two transfers of a round to one rank";
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    for (const Transfer& receive : ranks[r].receives) {
      const auto found = meetings.find({receive.round, receive.peer, rank});
      if (found == meetings.end()) return "a receive that no rank sends";
      if (found->second.receive) return "two receives for one send";
      found->second.receive = &receive;
    }
  }
  rounds.assign(index(ranks[0].rounds), {});
  for (const auto& [key, meeting] : meetings) {
    if (!meeting.receive) return "a send that no rank receives";
    if (meeting.from == meeting.to) return "a rank sends to itself";
    const auto sent = ranks[index(meeting.from)].blocks_of(*meeting.send);
    const auto received = ranks[index(meeting.to)].blocks_of(*meeting.receive);
    if (!std::ranges::equal(sent, received)) return "the ends expect different blocks";
    if (std::get<0>(key) < 0 || std::get<0>(key) >= ranks[0].rounds) return "no such round";
    rounds[index(std::get<0>(key))].push_back(meeting);
  }
  return {};
}

/// Empty if all is well.
inline std::string verify(const std::vector<Schedule>& ranks, const std::vector<Wanted>& wanted,
                          const std::function<int(Block)>& origin, Volume& volume) {
  std::vector<std::vector<Meeting>> rounds;
  if (std::string error = meet(ranks, rounds); !error.empty()) return error;
  volume = {ranks[0].rounds, 0, 0};
  enum State : char { passing, passed, kept };
  std::vector<std::unordered_map<Block, State>> held(ranks.size());
  for (const Wanted& one : wanted)
    if (one.origin != one.rank) held[index(one.rank)][one.block] = kept;
  // Those that have come, of the wanted ones.
  std::vector<std::unordered_map<Block, bool>> here(ranks.size());
  for (const auto& round : rounds) {
    if (round.empty()) return "a round without a transfer";
    for (const Meeting& meeting : round) {
      const auto blocks = ranks[index(meeting.from)].blocks_of(*meeting.send);
      ++volume.messages;
      volume.blocks += blocks.size();
      for (const Block block : blocks) {
        if (origin(block) == meeting.from) continue;
        if (!here[index(meeting.from)].count(block)) return "a rank sends what it does not have";
        if (auto& state = held[index(meeting.from)][block]; state == passing) state = passed;
      }
    }
    for (const Meeting& meeting : round)
      for (const Block block : ranks[index(meeting.to)].blocks_of(*meeting.receive)) {
        if (origin(block) == meeting.to) return "a block comes back to its origin";
        if (!here[index(meeting.to)].emplace(block, true).second) return "a block comes twice";
        held[index(meeting.to)].emplace(block, passing);
      }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const auto& [block, state] : held[r]) {
      if (!here[r].count(block)) return "a block does not come";
      if (state == passing) return "a block comes to a rank that neither wants it nor passes it on";
    }
  return {};
}

/// The vectors that a result has, as (origin, neighbour) pairs in order.
using Contributions = std::vector<std::pair<int, int>>;

/// Runs the sums of all ranks; `results` gets those of each. A shared vector counts as its
/// neighbour 0.
inline std::string add_up(const std::vector<SumSchedule>& sums, bool is_shared,
                          std::vector<Contributions>& results, Volume& volume) {
  std::vector<Schedule> ranks;
  for (const SumSchedule& sum : sums) ranks.push_back(sum.transfers);
  std::vector<std::vector<Meeting>> rounds;
  if (std::string error = meet(ranks, rounds); !error.empty()) return error;
  volume = {ranks[0].rounds, 0, 0};
  std::vector<std::vector<Contributions>> states;
  for (std::size_t r = 0; r < sums.size(); ++r) {
    states.emplace_back(sums[r].states);
    for (const auto& entry : sums[r].entries)
      for (int i = 0; i < entry.times; ++i)
        states[r][entry.state].push_back({static_cast<int>(r), is_shared ? 0 : entry.neighbour});
  }
  const auto enter = [](Contributions& into, const Contributions& what) {
    into.insert(into.end(), what.begin(), what.end());
  };
  std::string error;
  const auto merge = [&](int round) {
    for (std::size_t r = 0; r < sums.size(); ++r)
      for (const auto& one : sums[r].merges)
        if (one.round == round) {
          if (states[r][one.from].empty()) error = "an empty state is merged";
          enter(states[r][one.into], Contributions(states[r][one.from]));
        }
  };
  merge(-1);
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (rounds[round].empty()) return "a round without a transfer";
    std::vector<std::pair<const Meeting*, std::vector<Contributions>>> under_way;
    for (const Meeting& meeting : rounds[round]) {
      const auto from = index(meeting.from);
      const auto blocks = ranks[from].blocks_of(*meeting.send);
      ++volume.messages;
      volume.blocks += blocks.size();
      std::vector<Contributions> taken;
      for (const Block block : blocks) taken.push_back(states[from][sums[from].state_of[block]]);
      under_way.emplace_back(&meeting, std::move(taken));
    }
    for (const auto& [meeting, taken] : under_way) {
      const auto to = index(meeting->to);
      const auto blocks = ranks[to].blocks_of(*meeting->receive);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (taken[i].empty()) return "an empty state is sent";
        if (sums[to].into[blocks[i]].empty()) return "what comes enters no state";
        for (const std::uint32_t state : sums[to].into[blocks[i]])
          enter(states[to][state], taken[i]);
      }
    }
    merge(static_cast<int>(round));
  }
  results.clear();
  for (std::size_t r = 0; r < sums.size(); ++r) {
    std::ranges::sort(states[r][0]);
    if (states[r][0].empty() == sums[r].has_result) return "has_result is wrong";
    results.push_back(std::move(states[r][0]));
  }
  return error;
}

}  // namespace neighbourhood_simulator
