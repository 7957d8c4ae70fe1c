#include "engine/coll/neighbours/packed_sums.hpp"

#include <algorithm>
#include <cstring>

#include "engine/job/job.hpp"
#include "mpi/calls/counted.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

using schedule::Transfer;

PackedSums::PackedSums(Job& job, trace::Called called, Context& context, std::uint32_t tag,
                       const Exchange& exchange, const schedule::SumSchedule& schedule, Fold& fold)
    : job_(job),
      called_(called),
      context_(context),
      tag_(context, tag),
      exchange_(exchange),
      schedule_(schedule),
      fold_(fold),
      places_(schedule.transfers.blocks.size()) {
  for (const Transfer& transfer : schedule.transfers.receives) {
    for (std::size_t i = 0; i < transfer.count; ++i) {
      places_[transfer.first + i] = received_moves_++;
    }
  }
  for (const Transfer& transfer : schedule.transfers.sends) {
    for (std::size_t i = 0; i < transfer.count; ++i) places_[transfer.first + i] = sent_moves_++;
  }
  const std::size_t vectors = schedule.states + received_moves_ + sent_moves_ + 1;
  memory_ = job.pool.take(std::max<std::size_t>(vectors * fold.bytes(), 1));
  if (!memory_) mpi::fatal("no memory for the partial results of a reduction");
}

void PackedSums::start() {
  code_ = MPI_SUCCESS;
  begin();
}

/// Unless another call has its tag.
bool PackedSums::begin() {
  if (!tag_.take()) return false;
  is_under_way_ = true;
  round_ = 0;
  come_ = next_send_ = 0;
  const auto& receives = schedule_.transfers.receives;
  received_.assign(receives.size(), MPI_REQUEST_NULL);
  sent_.assign(schedule_.transfers.sends.size(), MPI_REQUEST_NULL);
  statuses_.resize(receives.size());
  is_there_.assign(schedule_.states, 0);
  for (std::size_t i = 0; i < receives.size() && fold_.bytes() > 0; ++i) {
    std::byte* const to = of_receives() + places_[receives[i].first] * fold_.bytes();
    note(mpi::counted::Irecv(to, static_cast<MPI_Count>(receives[i].count * fold_.bytes()),
                             MPI_BYTE, receives[i].peer, tag_.of_blocks(), context_.comm(),
                             &received_[i]));
  }
  enter_own();
  merge(-1);
  return true;
}

void PackedSums::enter(const void* from, std::uint32_t number, int times) {
  for (int i = 0; i < times; ++i) {
    if (is_there_[number]) {
      note(fold_.combine(from, state(number)));
    } else {
      std::memcpy(state(number), from, fold_.bytes());
      is_there_[number] = 1;
    }
  }
}

void PackedSums::enter_own() {
  const Part* before = nullptr;
  std::byte* const own = of_sends() + sent_moves_ * fold_.bytes();
  for (const schedule::SumSchedule::Entry& entry : schedule_.entries) {
    const Part& part = exchange_.to(entry.neighbour);
    if (part.bytes == 0) continue;
    if (&part != before) {
      note(copy_part(job_, part, {own, fold_.packed_count(), fold_.packed_type(), fold_.bytes()}));
    }
    before = &part;
    enter(own, entry.state, entry.times);
  }
}

void PackedSums::merge(int round) {
  for (const schedule::SumSchedule::Merge& merge : schedule_.merges) {
    if (merge.round == round && is_there_[merge.from]) enter(state(merge.from), merge.into);
  }
}

/// At what is received in the round that is under way.
bool PackedSums::look(bool waits) {
  const auto& receives = schedule_.transfers.receives;
  needed_ = come_;
  while (needed_ < receives.size() && receives[needed_].round <= round_) ++needed_;
  if (needed_ == come_) return true;
  const int count = static_cast<int>(needed_ - come_);
  int is_complete = 1;
  MPI_Request* const requests = received_.data() + come_;
  MPI_Status* const statuses = statuses_.data() + come_;
  const int code = waits ? mpi::calls().Waitall(count, requests, statuses)
                         : mpi::calls().Testall(count, requests, &is_complete, statuses);
  if (code != MPI_SUCCESS) note(code);
  if (code == MPI_SUCCESS && !is_complete) return false;
  for (; come_ < needed_; ++come_) {
    const auto expected = static_cast<MPI_Count>(receives[come_].count * fold_.bytes());
    if (code == MPI_SUCCESS && expected > 0 &&
        mpi::counted::bytes_of(statuses_[come_]) != expected) {
      note(job_.device_code);  // its sender has failed
    }
    if (code_ == MPI_SUCCESS) take_in(receives[come_]);
  }
  return true;
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
    std::byte* const begin = of_sends() + places_[transfer.first] * fold_.bytes();
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const std::uint32_t from = schedule_.state_of[schedule_.transfers.blocks[i]];
      std::memcpy(of_sends() + places_[i] * fold_.bytes(), state(from), fold_.bytes());
    }
    const std::size_t bytes = code_ == MPI_SUCCESS ? transfer.count * fold_.bytes() : 0;
    if (fold_.bytes() == 0) continue;
    note(mpi::counted::Isend(begin, static_cast<MPI_Count>(bytes), MPI_BYTE, transfer.peer,
                             tag_.of_blocks(), context_.comm(), &sent_[next_send_]));
  }
}

bool PackedSums::advance() {
  if (!is_under_way_ && !begin()) return false;
  for (; round_ < schedule_.transfers.rounds; ++round_) {
    send_round();
    if (!look(false)) return false;
    merge(round_);
  }
  int is_complete = 1;
  const int code = mpi::calls().Testall(static_cast<int>(sent_.size()), sent_.data(), &is_complete,
                                        MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS) note(code);
  if (code == MPI_SUCCESS && !is_complete) return false;
  deliver();
  is_under_way_ = false;
  tag_.give();
  return true;
}

void PackedSums::deliver() {
  const auto count = [&](const std::vector<Transfer>& transfers, trace::Direction direction) {
    for (const Transfer& transfer : transfers) {
      const std::size_t bytes = transfer.count * fold_.bytes();
      if (bytes == 0) continue;
      trace::Row& row = job_.record.row({direction, called_, context_.world_rank(transfer.peer)});
      trace::add(row.messages, 1);
      trace::add(row.raw_bytes, bytes);
      trace::add(row.wire_bytes, bytes);
    }
  };
  count(schedule_.transfers.sends, trace::Direction::send);
  count(schedule_.transfers.receives, trace::Direction::receive);
  if (code_ != MPI_SUCCESS || !schedule_.has_result || fold_.bytes() == 0) return;
  note(copy_part(job_, {state(0), fold_.packed_count(), fold_.packed_type(), fold_.bytes()},
                 exchange_.sum->result));
}

void PackedSums::wait_in_mpi() {
  if (!is_under_way_ || !job_.progress.idle() || job_.expects_data()) return;
  if (round_ < schedule_.transfers.rounds) {
    look(true);
    return;
  }
  note(mpi::calls().Waitall(static_cast<int>(sent_.size()), sent_.data(), MPI_STATUSES_IGNORE));
}

}  // namespace mpress::engine
