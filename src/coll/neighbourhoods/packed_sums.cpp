#include "coll/neighbourhoods/packed_sums.hpp"

#include <algorithm>
#include <cstring>

#include "coll/blocks/copy_block.hpp"
#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

using schedule::Transfer;

PackedSums::PackedSums(Messaging& messaging, trace::Called called, Team& team, std::uint32_t tag,
                       const Exchange& exchange, const schedule::SumSchedule& schedule, Fold& fold)
    : messaging_(messaging),
      tag_(team, tag),
      exchange_(exchange),
      schedule_(schedule),
      fold_(fold),
      places_(schedule.transfers.blocks.size()),
      messages_(messaging, called, team, tag_.of_blocks()) {
  for (const Transfer& transfer : schedule.transfers.receives) {
    for (std::size_t i = 0; i < transfer.count; ++i) {
      places_[transfer.first + i] = received_moves_++;
    }
  }
  for (const Transfer& transfer : schedule.transfers.sends) {
    for (std::size_t i = 0; i < transfer.count; ++i) places_[transfer.first + i] = sent_moves_++;
  }
}

void PackedSums::start() { begin(); }

/// Unless another call has its tag.
bool PackedSums::begin() {
  if (!tag_.take()) return false;
  is_under_way_ = true;
  round_ = 0;
  taken_in_ = next_send_ = 0;
  const auto& receives = schedule_.transfers.receives;
  is_there_.assign(schedule_.states, 0);
  const std::size_t vectors = schedule_.states + received_moves_ + sent_moves_ + 1;
  if (!memory_) {
    memory_ = messaging_.pool.take(std::max<std::size_t>(vectors * fold_.bytes(), 1));
  }
  messages_.start(receives.size(), schedule_.transfers.sends.size());
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const std::size_t bytes = receives[i].count * fold_.bytes();
    const std::size_t at = places_[receives[i].first] * fold_.bytes();
    messages_.receive(i, bytes_at(memory_ ? of_receives() + at : nullptr, bytes), receives[i].peer);
  }
  if (memory_) {
    enter_own();
    merge(-1);
  } else {
    messages_.note(Status::no_memory);
  }
  proceed();
  return true;
}

void PackedSums::enter(const void* from, std::uint32_t number, int times) {
  for (int i = 0; i < times; ++i) {
    if (is_there_[number]) {
      messages_.note(fold_.combine(from, state(number)));
    } else {
      std::memcpy(state(number), from, fold_.bytes());
      is_there_[number] = 1;
    }
  }
}

void PackedSums::enter_own() {
  const BlockData* before = nullptr;
  std::byte* const own = of_sends() + sent_moves_ * fold_.bytes();
  for (const schedule::SumSchedule::Entry& entry : schedule_.entries) {
    const BlockData& data = exchange_.to(entry.neighbour);
    if (data.bytes == 0) continue;
    if (&data != before) messages_.note(copy_block(messaging_, data, fold_.vector(own)));
    before = &data;
    enter(own, entry.state, entry.times);
  }
}

void PackedSums::merge(int round) {
  for (const schedule::SumSchedule::Merge& merge : schedule_.merges) {
    if (merge.round == round && is_there_[merge.from]) enter(state(merge.from), merge.into);
  }
}

/// How many receives belong to rounds up to the one that is under way.
std::size_t PackedSums::needed() const {
  const auto& receives = schedule_.transfers.receives;
  std::size_t most = taken_in_;
  while (most < receives.size() && receives[most].round <= round_) ++most;
  return most;
}

void PackedSums::take_in(const Transfer& transfer) {
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    const std::byte* const from = of_receives() + places_[i] * fold_.bytes();
    for (const std::uint32_t into : schedule_.into[schedule_.transfers.blocks[i]]) {
      enter(from, into);
    }
  }
}

void PackedSums::send_round() {
  const auto& sends = schedule_.transfers.sends;
  for (; next_send_ < sends.size() && sends[next_send_].round == round_; ++next_send_) {
    const Transfer& transfer = sends[next_send_];
    const std::size_t bytes = transfer.count * fold_.bytes();
    if (bytes == 0) continue;
    if (!status().is_ok()) {
      messages_.send_nothing(next_send_, transfer.peer);
      continue;
    }
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const std::uint32_t from = schedule_.state_of[schedule_.transfers.blocks[i]];
      std::memcpy(of_sends() + places_[i] * fold_.bytes(), state(from), fold_.bytes());
    }
    std::byte* const begin = of_sends() + places_[transfer.first] * fold_.bytes();
    messages_.send(next_send_, bytes_at(begin, bytes), transfer.peer);
  }
}

/// Are all rounds over, but for what MPI has still to send?
bool PackedSums::proceed() {
  const auto& receives = schedule_.transfers.receives;
  for (; round_ < schedule_.transfers.rounds; ++round_) {
    send_round();
    const std::size_t most = needed();
    if (!messages_.have_come(most)) return false;
    for (; taken_in_ < most; ++taken_in_) {
      if (status().is_ok()) take_in(receives[taken_in_]);
    }
    if (status().is_ok()) merge(round_);
  }
  return true;
}

bool PackedSums::advance() {
  if (!is_under_way_ && !begin()) return false;
  if (!proceed() || !messages_.are_sent()) return false;
  deliver();
  is_under_way_ = false;
  tag_.give();
  return true;
}

void PackedSums::deliver() {
  const auto count = [&](trace::Direction direction, const std::vector<Transfer>& transfers) {
    for (const Transfer& one : transfers) {
      const std::size_t bytes = one.count * fold_.bytes();
      messages_.count(direction, one.peer, bytes, bytes);
    }
  };
  count(trace::Direction::send, schedule_.transfers.sends);
  count(trace::Direction::receive, schedule_.transfers.receives);
  if (!status().is_ok() || !schedule_.has_result || fold_.bytes() == 0) return;
  messages_.note(copy_block(messaging_, fold_.vector(state(0)), exchange_.sum->result));
}

bool PackedSums::wait() {
  if (!is_under_way_) return false;
  if (round_ < schedule_.transfers.rounds) {
    return messages_.wait_for(needed());
  }
  return messages_.wait_until_sent();
}

}  // namespace mpress::engine
