// Runs a reduction of a neighbourhood by message combining: partial results along one dimension
// after another (schedule/neighbourhoods/neighbour_sums).
#pragma once

#include <cstddef>
#include <vector>

#include "coll/call_tag.hpp"
#include "coll/neighbourhoods/exchange.hpp"
#include "coll/neighbourhoods/fold.hpp"
#include "coll/neighbourhoods/raw_messages.hpp"
#include "coll/team.hpp"
#include "memory/buffer_pool.hpp"
#include "schedule/neighbourhoods/neighbour_sums.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// Raises nothing. One thread at a time calls it.
class PackedSums {
 public:
  /// All but the tag outlives it. Where there is no memory others get nothing, and an error.
  PackedSums(Messaging& messaging, trace::Called called, Team& team, std::uint32_t tag,
             const Exchange& exchange, const schedule::SumSchedule& schedule, Fold& fold);

  /// Not while it is under way.
  void start();
  /// Waits for no rank. True once it is over: then the result is where the program wants it.
  bool advance();
  /// For a call that blocks, between two calls of advance().
  bool wait();
  Status status() const { return messages_.status(); }

 private:
  bool begin();
  std::size_t needed() const;
  bool proceed();
  std::byte* state(std::uint32_t number) const { return memory_.data() + number * fold_.bytes(); }
  std::byte* of_receives() const { return state(schedule_.states); }
  std::byte* of_sends() const { return of_receives() + received_moves_ * fold_.bytes(); }
  void enter(const void* from, std::uint32_t number, int times = 1);
  void enter_own();
  void merge(int round);
  void send_round();
  void take_in(const schedule::Transfer& transfer);
  void deliver();

  Messaging& messaging_;
  CallTag tag_;
  const Exchange& exchange_;
  const schedule::SumSchedule& schedule_;
  Fold& fold_;
  std::size_t received_moves_ = 0;
  std::size_t sent_moves_ = 0;
  std::vector<std::size_t> places_;  ///< of each entry: among the moves received, or sent
  memory::Buffer memory_;            ///< states, moves received, moves sent, one own vector
  std::vector<char> is_there_;       ///< each state: anything
  RawMessages messages_;
  int round_ = 0;  ///< under way
  std::size_t taken_in_ = 0, next_send_ = 0;
  bool is_under_way_ = false;
};

}  // namespace mpress::engine
