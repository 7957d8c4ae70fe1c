// Runs the schedules of all ranks with symbolic blocks and few slots: does every runner that keeps
// the rules of schedule/schedule.hpp get to the end?
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule_verifier.hpp"

namespace schedule_simulator {

/// How a runner goes about it.
struct Runner {
  int window = 1;            ///< rounds under way: those that begin with the first not finished one
  int slots = 1;             ///< to each peer
  bool is_in_order = false;  ///< a send that cannot start holds up those after it
  bool awaits_reader = false;  ///< a send is over when it is read, else when it is sent
  bool varies = false;         ///< ranks have windows of their own, up to `window`

  int window_of(int rank) const { return varies ? 1 + (5 * rank + 3) % window : window; }
};

/// Slots that several operations share: one from each process to each.
struct SharedSlots {
  SharedSlots(int processes, bool is_eager)
      : processes(processes), is_eager(is_eager), is_taken(index(processes * processes)) {}
  int processes;
  bool is_eager;  ///< one is taken even if its reader cannot empty it at once
  std::vector<bool> is_taken;
};

/// One operation under way: every rank does what it can, in any order, once it has entered.
class Run {
 public:
  /// `process_of`: of each rank; by default its own number. `shared`: to be used in the place of
  /// slots of its own; or null.
  Run(const Plan& plan, Runner runner, std::vector<int> process_of = {},
      SharedSlots* shared = nullptr)
      : plan_(plan),
        runner_(runner),
        process_of_(std::move(process_of)),
        shared_(shared),
        held_(plan.task),
        states_(plan.ranks.size()) {
    for (int rank = 0; rank < plan.task.size; ++rank) {
      if (process_of_.size() <= index(rank)) process_of_.push_back(rank);
      State& state = states_[index(rank)];
      const Schedule& schedule = plan.ranks[index(rank)];
      state.sends.resize(schedule.sends.size());
      state.receives.resize(schedule.receives.size());
    }
    pair_up();
  }

  const std::vector<int>& process_of() const { return process_of_; }
  void enter(int rank) { states_[index(rank)].has_entered = true; }

  bool is_over() const {
    return std::all_of(states_.begin(), states_.end(), [](const State& state) {
      return state.first_send == state.sends.size() && state.first_receive == state.receives.size();
    });
  }

  /// All that `rank` can do now. `wake(rank)`: that one may now get on. Has anything been done?
  template <class Wake>
  bool advance(int rank, Wake wake) {
    State& state = states_[index(rank)];
    if (!state.has_entered) return false;
    bool has_moved = false;
    for (bool moves = true; moves; has_moved |= moves) {
      moves = false;
      skip_finished(rank);
      const int end = first_round(rank) + runner_.window_of(rank);
      moves |= send(rank, end, wake);
      moves |= receive(rank, end, wake);
    }
    return has_moved;
  }

 private:
  enum class Status : std::uint8_t { waiting, sent, taken };
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Send {
    Status status = Status::waiting;
    std::uint32_t previous = none;  ///< to the same peer
    std::uint32_t frees = none;     ///< that has to be taken before this one has a slot
    std::uint32_t reader = none;    ///< the peer's receive
  };
  struct Receive {
    bool is_taken = false;
    std::uint32_t sender = none;  ///< the peer's send
  };
  struct State {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::size_t first_send = 0;  ///< that is not over
    std::size_t first_receive = 0;
    bool has_entered = false;
  };

  const Transfer& send_of(int rank, std::size_t i) const {
    return plan_.ranks[index(rank)].sends[i];
  }
  const Transfer& receive_of(int rank, std::size_t i) const {
    return plan_.ranks[index(rank)].receives[i];
  }

  /// By peer, and then in their order.
  static std::vector<std::uint32_t> by_peer(const std::vector<Transfer>& transfers) {
    std::vector<std::uint32_t> order(transfers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return transfers[a].peer < transfers[b].peer;
    });
    return order;
  }

  /// A rank's k-th receive from a peer takes that peer's k-th send to it: nothing else is known of
  /// what is in a slot.
  void pair_up() {
    std::vector<std::vector<std::uint32_t>> sends;
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      const auto& transfers = plan_.ranks[rank].sends;
      sends.push_back(by_peer(transfers));
      const auto& order = sends.back();
      const auto same_peer = [&](std::size_t a, std::size_t b) {
        return transfers[order[a]].peer == transfers[order[b]].peer;
      };
      for (std::size_t i = 1; i < order.size(); ++i) {
        Send& send = states_[rank].sends[order[i]];
        if (same_peer(i - 1, i)) send.previous = order[i - 1];
        const auto slots = index(runner_.slots);
        if (i >= slots && same_peer(i - slots, i)) send.frees = order[i - slots];
      }
    }
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      const auto& transfers = plan_.ranks[rank].receives;
      int peer = -1;
      std::vector<std::uint32_t>::const_iterator next, end;
      for (const std::uint32_t i : by_peer(transfers)) {
        if (transfers[i].peer != peer) {
          peer = transfers[i].peer;
          std::tie(next, end) = sends_to(sends[index(peer)], peer, static_cast<int>(rank));
        }
        if (next == end) continue;
        states_[rank].receives[i].sender = *next;
        states_[index(peer)].sends[*next++].reader = i;
      }
    }
  }

  auto sends_to(const std::vector<std::uint32_t>& order, int from,
                int to) const -> std::pair<std::vector<std::uint32_t>::const_iterator,
                                           std::vector<std::uint32_t>::const_iterator> {
    const auto& transfers = plan_.ranks[index(from)].sends;
    const auto begin =
        std::lower_bound(order.begin(), order.end(), to,
                         [&](std::uint32_t i, int peer) { return transfers[i].peer < peer; });
    const auto end = std::upper_bound(begin, order.end(), to, [&](int peer, std::uint32_t i) {
      return peer < transfers[i].peer;
    });
    return {begin, end};
  }

  bool is_over(const Send& send) const {
    return send.status == Status::taken || (send.status == Status::sent && !runner_.awaits_reader);
  }

  void skip_finished(int rank) {
    State& state = states_[index(rank)];
    while (state.first_send < state.sends.size() && is_over(state.sends[state.first_send]))
      ++state.first_send;
    while (state.first_receive < state.receives.size() &&
           state.receives[state.first_receive].is_taken)
      ++state.first_receive;
  }

  int first_round(int rank) {
    skip_finished(rank);
    const State& state = states_[index(rank)];
    int round = plan_.ranks[index(rank)].rounds;
    if (state.first_send < state.sends.size())
      round = std::min(round, send_of(rank, state.first_send).round);
    if (state.first_receive < state.receives.size())
      round = std::min(round, receive_of(rank, state.first_receive).round);
    return round;
  }

  bool has_blocks(int rank, const Transfer& transfer) const {
    for (const Block block : plan_.ranks[index(rank)].blocks_of(transfer))
      if (plan_.task.origin(block) != rank && !held_.has(rank, block)) return false;
    return true;
  }

  std::size_t shared_slot(int from, int to) const {
    return index(process_of_[index(from)] * shared_->processes + process_of_[index(to)]);
  }

  bool has_slot(int rank, const Send& send, const Transfer& transfer) {
    const std::vector<Send>& sends = states_[index(rank)].sends;
    if (send.previous != none && sends[send.previous].status == Status::waiting) return false;
    if (!shared_) return send.frees == none || sends[send.frees].status == Status::taken;
    if (shared_->is_taken[shared_slot(rank, transfer.peer)]) return false;
    if (shared_->is_eager) return true;
    const State& peer = states_[index(transfer.peer)];
    return peer.has_entered && receive_of(transfer.peer, send.reader).round <
                                   first_round(transfer.peer) + runner_.window_of(transfer.peer);
  }

  template <class Wake>
  bool send(int rank, int end, Wake wake) {
    State& state = states_[index(rank)];
    bool moves = false;
    for (std::size_t i = state.first_send; i < state.sends.size(); ++i) {
      const Transfer& transfer = send_of(rank, i);
      Send& send = state.sends[i];
      if (transfer.round >= end) break;
      if (send.status != Status::waiting) continue;
      if (!has_slot(rank, send, transfer) || !has_blocks(rank, transfer)) {
        if (runner_.is_in_order) break;
        continue;
      }
      send.status = Status::sent;
      if (shared_) shared_->is_taken[shared_slot(rank, transfer.peer)] = true;
      wake(transfer.peer);
      moves = true;
    }
    return moves;
  }

  template <class Wake>
  bool receive(int rank, int end, Wake wake) {
    State& state = states_[index(rank)];
    bool moves = false;
    for (std::size_t i = state.first_receive; i < state.receives.size(); ++i) {
      const Transfer& transfer = receive_of(rank, i);
      Receive& receive = state.receives[i];
      if (transfer.round >= end) break;
      if (receive.is_taken || receive.sender == none) continue;
      Send& send = states_[index(transfer.peer)].sends[receive.sender];
      if (send.status != Status::sent) continue;
      send.status = Status::taken;
      receive.is_taken = true;
      if (shared_) shared_->is_taken[shared_slot(transfer.peer, rank)] = false;
      for (const Block block : plan_.ranks[index(rank)].blocks_of(transfer)) held_.set(rank, block);
      wake(transfer.peer);
      moves = true;
    }
    return moves;
  }

  const Plan& plan_;
  Runner runner_;
  std::vector<int> process_of_;
  SharedSlots* shared_;
  Held held_;
  std::vector<State> states_;
};

/// Processes get on in a random order until none can; each enters the operations in an order of its
/// own, and sooner or later all of them. Empty if all operations are over then.
inline std::string drive(std::vector<Run>& runs, int processes, std::mt19937& random) {
  struct Process {
    std::vector<std::pair<std::size_t, int>> to_enter;  ///< run and rank; from the back
    std::vector<std::pair<std::size_t, int>> entered;
    bool is_listed = true;
  };
  std::vector<Process> all(index(processes));
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::size_t rank = 0; rank < runs[run].process_of().size(); ++rank)
      all[index(runs[run].process_of()[rank])].to_enter.emplace_back(run, static_cast<int>(rank));
  std::vector<int> able;
  for (int process = 0; process < processes; ++process) {
    auto& order = all[index(process)].to_enter;
    std::shuffle(order.begin(), order.end(), random);
    able.push_back(process);
  }
  const auto list = [&](int process) {
    if (std::exchange(all[index(process)].is_listed, true)) return;
    able.push_back(process);
  };
  while (!able.empty()) {
    std::swap(able[random() % able.size()], able.back());
    const int number = able.back();
    able.pop_back();
    Process& process = all[index(number)];
    process.is_listed = false;
    bool has_moved = false;
    if (!process.to_enter.empty()) {
      const auto [run, rank] = process.to_enter.back();
      process.entered.push_back(process.to_enter.back());
      process.to_enter.pop_back();
      runs[run].enter(rank);
      has_moved = true;
      list(number);
    }
    for (const auto& [run, rank] : process.entered)
      has_moved |= runs[run].advance(
          rank, [&, &run = runs[run]](int peer) { list(run.process_of()[index(peer)]); });
    // Who may use a shared slot depends on how far its reader is.
    if (has_moved && runs.size() > 1)
      for (int other = 0; other < processes; ++other) list(other);
  }
  for (std::size_t run = 0; run < runs.size(); ++run)
    if (!runs[run].is_over()) return "operation " + std::to_string(run) + " never ends";
  return {};
}

}  // namespace schedule_simulator
