#include "engine/coll/runner.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/coll/shared_blocks.hpp"
#include "engine/job.hpp"
#include "engine/p2p/exchange.hpp"
#include "engine/p2p/send.hpp"
#include "engine/request/completion.hpp"
#include "mpi/counted.hpp"

namespace mpress::engine {
namespace {

using schedule::Schedule;
using schedule::Transfer;

class Runner {
 public:
  Runner(Job& job, const Collective& call, const Context& context, const Schedule& schedule,
         const BlockMap& blocks, int code)
      : job_(job),
        call_(call),
        context_(context),
        schedule_(schedule),
        blocks_(blocks),
        shared_(job, call, context, schedule, blocks),
        has_own_(code == MPI_SUCCESS),
        code_(code) {}

  int run();

 private:
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }
  void keep(MPI_Request request) {
    if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  }
  void receive(const Transfer& transfer);
  void send(const Transfer& transfer);
  void send_shared(std::span<const Transfer> transfers);
  void send_shared(schedule::Block block, std::span<const int> readers);
  bool has(schedule::Block block) const;
  void send(int to, const Part& part, std::optional<trace::Reason> raw_for = {});
  void tell_failure(int to);
  void complete();
  void complete_requests();

  Job& job_;
  const Collective& call_;
  const Context& context_;
  const Schedule& schedule_;
  const BlockMap& blocks_;
  SharedBlocks shared_;
  std::vector<std::shared_ptr<ParcelSend>> parcels_;  ///< of this round, that are under way
  std::vector<MPI_Request> requests_;                 ///< of this round; receives first
  std::size_t receives_ = 0;
  const bool has_own_;  ///< blocks
  int code_;
};

int Runner::run() {
  auto send_next = schedule_.sends.begin();
  auto receive_next = schedule_.receives.begin();
  for (int round = 0; round < schedule_.rounds; ++round) {
    requests_.clear();
    while (receive_next != schedule_.receives.end() && receive_next->round == round) {
      receive(*receive_next++);
    }
    receives_ = requests_.size();
    const auto first_send = send_next;
    while (send_next != schedule_.sends.end() && send_next->round == round) ++send_next;
    if (call_.has_many_readers) {
      send_shared({first_send, send_next});
    } else {
      std::for_each(first_send, send_next, [this](const Transfer& one) { send(one); });
    }
    complete();
  }
  note(shared_.finish());
  return code_;
}

void Runner::receive(const Transfer& transfer) {
  for (const schedule::Block block : schedule_.blocks_of(transfer)) {
    const Part part = blocks_.incoming(block);
    if (part.bytes == 0) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    note(receive_later(job_, call_.op, {part.data, part.count, part.type, context_.comm()},
                       {transfer.peer, context_.block_tag()}, &request, shared_.to_keep(block)));
    keep(request);
  }
}

void Runner::send(const Transfer& transfer) {
  for (const schedule::Block block : schedule_.blocks_of(transfer)) {
    const Part part = blocks_.outgoing(block);
    if (part.bytes == 0) continue;
    if (has(block)) {
      send(transfer.peer, part);
    } else {
      tell_failure(transfer.peer);
    }
  }
}

/// What should have come may not have.
bool Runner::has(schedule::Block block) const {
  const bool is_own = blocks_.task().origin(block) == context_.rank();
  return is_own ? has_own_ : code_ == MPI_SUCCESS || shared_.is_kept(block);
}

/// All of a round: those that get the same block next, in the order in which each gets them.
void Runner::send_shared(std::span<const Transfer> transfers) {
  std::vector<std::uint32_t> sent(transfers.size());
  for (std::size_t i = 0; i < transfers.size();) {
    if (sent[i] == transfers[i].count) {
      ++i;
      continue;
    }
    const schedule::Block block = schedule_.blocks_of(transfers[i])[sent[i]];
    std::vector<int> readers;
    for (std::size_t j = i; j < transfers.size(); ++j) {
      if (sent[j] == transfers[j].count) continue;
      if (schedule_.blocks_of(transfers[j])[sent[j]] != block) continue;
      readers.push_back(transfers[j].peer);
      ++sent[j];
    }
    send_shared(block, readers);
  }
}

void Runner::send_shared(schedule::Block block, std::span<const int> readers) {
  const Part part = blocks_.outgoing(block);
  if (part.bytes == 0) return;
  SharedBlocks::Sending sending;
  const bool is_here = has(block);
  if (is_here) sending = shared_.send(block, part, readers, context_.block_tag());
  note(sending.code);
  if (sending.begun) {
    if (sending.begun->advance()) return note(sending.begun->code());
    parcels_.push_back(sending.begun);
    job_.progress.add(std::move(sending.begun));
    return;
  }
  for (const int reader : readers) {
    if (is_here && sending.code == MPI_SUCCESS) {
      send(reader, part, sending.raw_for);
    } else {
      tell_failure(reader);
    }
  }
}

void Runner::send(int to, const Part& part, std::optional<trace::Reason> raw_for) {
  const SendArguments arguments{part.data, part.count, part.type, to, context_.comm()};
  const SendCall call{call_.op, call_.family, true, raw_for};
  Outgoing out = prepare_send(job_, call, arguments);
  if (out.error != MPI_SUCCESS) {
    note(out.error);
    return tell_failure(to);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  note(send_later(job_, std::move(out), mpi::counted::Isend, context_.block_tag(), &request));
  keep(request);
}

void Runner::tell_failure(int to) {
  MPI_Request request = MPI_REQUEST_NULL;
  note(mpi::counted::Isend(nullptr, 0, MPI_BYTE, to, context_.block_tag(), context_.comm(),
                           &request));
  keep(request);
}

/// Waits for all requests of the round, also where some fail.
void Runner::complete() {
  complete_requests();
  for (const auto& parcel : parcels_) {
    job_.progress.wait_until([&] { return parcel->is_over(); });
    note(parcel->code());
  }
  parcels_.clear();
}

void Runner::complete_requests() {
  if (requests_.empty()) return;
  std::vector<MPI_Status> statuses(requests_.size());
  const int code = waitall(job_, static_cast<int>(requests_.size()), requests_.data(),
                           statuses.data(), call_.op);
  const bool has_errors = code == MPI_ERR_IN_STATUS;
  if (!has_errors) note(code);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int one = has_errors ? statuses[i].MPI_ERROR : code;
    if (requests_[i] != MPI_REQUEST_NULL) one = wait(job_, &requests_[i], &statuses[i]);
    note(one);
    // Its sender could not send it.
    if (one == MPI_SUCCESS && i < receives_ && mpi::counted::bytes_of(statuses[i]) == 0) {
      note(job_.device_code);
    }
  }
}

}  // namespace

int run_schedule(Job& job, const Collective& call, const Context& context, const Schedule& schedule,
                 const BlockMap& blocks, int code) {
  return Runner(job, call, context, schedule, blocks, code).run();
}

}  // namespace mpress::engine
