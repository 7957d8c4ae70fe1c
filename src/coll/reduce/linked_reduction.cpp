#include "coll/reduce/linked_reduction.hpp"

#include <string>
#include <utility>

#include "coll/algorithms/linked_reduction.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/moved.hpp"
#include "core/plain_layout.hpp"
#include "core/staging.hpp"
#include "gpu/codec_queue.hpp"
#include "message/messaging.hpp"
#include "schedule/algorithms.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
LinkedReduction::Goal LinkedReduction::goal_of(const Collective& call) {
  if (call.family == Family::allreduce) return Goal::all;
  return call.family == Family::reduce ? Goal::root : Goal::each;
}

LinkedReduction::LinkedReduction(const CallHere& here)
    : OfferedCall(here.messaging, here.agreed.call, here.team),
      link_(messaging_.links.peer),
      root_(here.agreed.root),
      program_results_(here.results),
      goal_(goal_of(call_)),
      reduction_(*here.reduction),
      shots_(linked_shots_of(here.agreed)),
      begins_(pieces_of(here.agreed, false)) {
  for (int rank = 0; rank < team_.size(); ++rank) {
    if (rank != team_.rank() && reads(rank)) readers_.push_back(team_.world_rank(rank));
  }
}

LinkedReduction::~LinkedReduction() {
  if (phase_ == Phase::offering) withdraw();
}

/// Does a member combine anything?
bool LinkedReduction::reads(int rank) const {
  if (goal_ == Goal::root) return rank == root_;
  return goal_ == Goal::all || piece_bytes(rank) > 0;
}

/// What it reads of what another brings.
std::size_t LinkedReduction::bytes_read(int by, int from) const {
  if (!reads(by)) return 0;
  if (shots_ == policy::Shots::two) return piece_bytes(by) + piece_bytes(from);
  return goal_ == Goal::each ? piece_bytes(by) : input_bytes();
}

LinkedReduction::Offer LinkedReduction::offer() {
  if (open()) return {1, route_to(own_input_), route_to(own_piece_)};
  withdraw();
  return {};
}

/// Finds where the data lies, and slots.
bool LinkedReduction::open() {
  const Layout& layout = *plain_layout(reduction_.type);
  const auto is_there = [&](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % width() == 0 &&
           device_of(messaging_, data, layout) == device_;
  };
  input_ = static_cast<const std::byte*>(reduction_.input);
  device_ = device_of(messaging_, input_, layout);
  if (device_ == gpu::host || !is_there(input_)) return false;
  if (reads(team_.rank())) {
    results_ = static_cast<std::byte*>(program_results_);
    if (!is_there(results_)) return false;
  }
  // The first calls go otherwise, until all have opened what the others share.
  bool are_read = true;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const int other = team_.world_rank(rank);
    if (rank == team_.rank()) continue;
    link_.connect(other, device_);
    are_read = are_read && link_.is_read_by(other, device_);
  }
  if (!are_read) return false;
  queue_ = messaging_.devices.queue(device_, gpu::Priority::first);
  if (!queue_ || (has_readers() && !reserve(input_bytes(), own_input_))) return false;
  const std::size_t own = piece_bytes(team_.rank());
  if (shots_ == policy::Shots::two && own > 0 && !reserve(own, own_piece_)) return false;
  return link_.devices_publish();
}

bool LinkedReduction::reserve(std::size_t bytes, link::Transfer& transfer) {
  const link::Reservation wanted{readers_, device_, 1, bytes,
                                 messaging_.links.channel.next_operation()};
  if (!link_.reserve(wanted, transfer)) return false;
  link_.lay_out(transfer);
  return true;
}

/// That of the first reader; see index_at(). 0: there is nothing.
std::uint64_t LinkedReduction::route_to(const link::Transfer& transfer) const {
  return transfer.chunks == 0 ? 0 : link::Route(0, link::Kind::peer, transfer.first).word();
}

/// Where the device tells of a slot of so many bytes.
std::uint32_t* LinkedReduction::flag_of(const link::Transfer& transfer, std::size_t bytes) {
  link::Report* const report = link_.report(transfer, 0);
  report->bytes = bytes;
  return &report->sequence;
}

Answer LinkedReduction::accept(std::span<const std::uint64_t> told) {
  const int me = team_.rank();
  for (int rank = 0; rank < team_.size(); ++rank) {
    if (told[static_cast<std::size_t>(rank) * words] != 0) continue;
    withdraw();
    return Answer::not_now;
  }
  if (has_readers()) {
    std::uint32_t* const flag = flag_of(own_input_, input_bytes());
    last_ = queue_->copy_near(own_input_.place(0), input_, input_bytes(), flag);
  }
  const bool is_two = shots_ == policy::Shots::two;
  for (int rank = 0; rank < team_.size(); ++rank) {
    if (rank == me || !reads(me)) continue;
    const auto i = static_cast<std::size_t>(rank) * words;
    receive(inputs_, rank, told[i + 1], input_bytes());
    if (is_two && piece_bytes(rank) > 0) receive(pieces_, rank, told[i + 2], piece_bytes(rank));
  }
  phase_ = reads(me) ? Phase::combining : Phase::ending;
  return Answer::accepted;
}

/// Among the readers of what `member` brings.
std::uint32_t LinkedReduction::index_at(int member) const {
  std::uint32_t index = 0;
  for (int rank = 0; rank < team_.rank(); ++rank) index += rank != member && reads(rank);
  return index;
}

void LinkedReduction::receive(std::vector<Source>& sources, int member, std::uint64_t word,
                              std::size_t bytes) {
  link::Route route(word);
  route.slot += index_at(member);
  const int rank = team_.world_rank(member);
  sources.push_back({member});
  if (word == 0 || route.kind != link::Kind::peer || !link_.knows(rank, route, 1)) return;
  sources.back().inbound = link_.receive(
      {rank, route, 1, bytes, bytes, true, device_, nullptr, &messaging_.links.channel, 0});
}

bool LinkedReduction::advance() {
  if (phase_ == Phase::combining && have_come(inputs_)) combine();
  if (phase_ == Phase::reading && have_come(pieces_)) read_pieces();
  if (phase_ == Phase::ending && end()) phase_ = Phase::over;
  return phase_ == Phase::over;
}

/// Others may wait for what this member's device refuses to copy, and it for them.
bool LinkedReduction::have_come(std::vector<Source>& sources) {
  if (last_ != 0 && queue_->query(last_) == gpu::State::failed) {
    phase_ = Phase::ending;
    return false;
  }
  bool have_all = true;
  for (Source& source : sources) {
    if (source.has_come) continue;
    const gpu::State state =
        source.inbound ? source.inbound->poll(0, source.arrived) : gpu::State::failed;
    if (state == gpu::State::pending) have_all = false;
    source.has_come = state == gpu::State::done && source.arrived.device == device_;
    if (state == gpu::State::pending || source.has_come) continue;
    trace::say("rank " + std::to_string(messaging_.rank) + ": what rank " +
               std::to_string(team_.world_rank(source.member)) +
               " brings to a reduction did not come from its GPU");
    status_ = Status::device_failed;
    phase_ = Phase::ending;
    return false;
  }
  return have_all;
}

/// In the order of the ranks, so that all have the same bits.
void LinkedReduction::combine() {
  const int me = team_.rank();
  const bool is_two = shots_ == policy::Shots::two;
  const bool is_piece = is_two || goal_ == Goal::each;
  const std::size_t offset = is_piece ? begin_of(me) : 0;
  const std::size_t bytes = is_piece ? piece_bytes(me) : input_bytes();
  // Results of MPI_Reduce_scatter in place lie where others' pieces were.
  const bool is_overlapped = goal_ == Goal::each && reduction_.is_in_place && has_readers();
  const std::byte* const own = is_overlapped ? own_input_.place(0) : input_;
  std::vector<const void*> inputs;
  auto other = inputs_.begin();
  for (int rank = 0; rank < team_.size(); ++rank) {
    inputs.push_back((rank == me ? own : (other++)->arrived.data) + offset);
  }
  if (bytes > 0) {
    last_ =
        queue_->codecs().combine(reduction_.how, reduction_.type, inputs,
                                 is_two ? own_piece_.place(0) : results_, bytes / width(), false);
    if (is_two) last_ = queue_->write(flag_of(own_piece_, bytes), 1);
  }
  phase_ = is_two ? Phase::reading : Phase::ending;
}

void LinkedReduction::read_pieces() {
  const int me = team_.rank();
  std::vector<gpu::Copy> copies;
  const auto read = [&](int rank, const std::byte* piece) {
    if (copies.size() == gpu::Queue::most_copies) {
      queue_->copy_near(copies);
      copies.clear();
    }
    copies.push_back({results_ + begin_of(rank), piece, piece_bytes(rank)});
  };
  if (piece_bytes(me) > 0) read(me, own_piece_.place(0));
  for (const Source& source : pieces_) read(source.member, source.arrived.data);
  last_ = queue_->copy_near(copies);
  phase_ = Phase::ending;
}

/// True once the device does nothing any more. Readers of what it has not made are told then.
bool LinkedReduction::end() {
  if (last_ != 0) {
    const gpu::State state = queue_->query(last_);
    if (state == gpu::State::pending) return false;
    if (state == gpu::State::failed) {
      queue_->drain();  // of nothing: it refuses
      status_ = refused(messaging_, device_);
    }
  }
  for (std::vector<Source>* sources : {&inputs_, &pieces_}) {
    for (Source& source : *sources) {
      if (source.inbound) source.inbound->finish(true);
    }
  }
  for (const link::Transfer* transfer : {&own_input_, &own_piece_}) {
    if (transfer->chunks == 0) continue;
    if (status_.is_ok()) {
      link_.release(*transfer);
    } else {
      link_.fail(*transfer);
    }
  }
  queue_ = {};
  const int me = team_.rank();
  for (int rank = 0; rank < team_.size() && status_.is_ok(); ++rank) {
    if (rank == me) continue;
    count_by_kernel(messaging_, called(), trace::Way::peer, team_.world_rank(rank),
                    bytes_read(rank, me), bytes_read(me, rank));
  }
  return true;
}

/// The device has been given nothing, and no member will read the slots.
void LinkedReduction::withdraw() {
  for (link::Transfer* transfer : {&own_input_, &own_piece_}) {
    if (transfer->chunks > 0) link_.abandon(*transfer);
    *transfer = {};
  }
  queue_ = {};
  phase_ = Phase::over;
}

trace::Called LinkedReduction::called() const {
  const auto algorithm =
      shots_ == policy::Shots::two ? schedule::Algorithm::two_shot : schedule::Algorithm::one_shot;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

}  // namespace mpress::engine
