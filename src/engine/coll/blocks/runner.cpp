#include "engine/coll/blocks/runner.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {

using schedule::Transfer;

namespace {

/// More hide no more of what a codec takes, and hold memory.
constexpr int rounds_at_once = 2;

/// Shorter blocks take a link for less time than it takes to find that they have come.
constexpr std::size_t least_crowding = 128 << 10;

/// Of transfers in the order of their rounds, the first of which is of `round` or a later one.
std::span<const Transfer> of_round(const std::vector<Transfer>& all, std::size_t first, int round) {
  std::size_t end = first;
  while (end < all.size() && all[end].round == round) ++end;
  return std::span(all).subspan(first, end - first);
}

/// Reductions encode also where no rank gains by that.
bool encodes_anyway(trace::Called called) {
  return called.op == trace::Op::allreduce || called.op == trace::Op::reduce ||
         called.op == trace::Op::reduce_scatter || called.op == trace::Op::reduce_scatter_block;
}

}  // namespace

Runner::Runner(Job& job, const Collective& call, trace::Called called, const Team& team, int tag,
               const schedule::Schedule& schedule, const BlockMap& blocks, int code,
               const Coding* coding)
    : job_(job),
      call_(call),
      called_(called),
      team_(team),
      tag_(tag),
      schedule_(schedule),
      blocks_(blocks),
      coding_(coding),
      shared_(job, call, called, team, schedule, blocks, coding),
      has_own_(code == MPI_SUCCESS),
      code_(code) {}

bool Runner::advance() {
  look();
  while (begin_receives() || begin_sends()) look();
  return messages_.empty() && have_all_begun();
}

/// That is not over.
int Runner::oldest_round() const {
  int oldest = std::min(sending_, receiving_) + 1;
  for (const Message& message : messages_) oldest = std::min(oldest, message.round);
  return oldest;
}

bool Runner::have_all_begun() const {
  return sending_ + 1 == schedule_.rounds && receiving_ + 1 == schedule_.rounds;
}

bool Runner::may_begin(int round) const {
  return round < schedule_.rounds && round < oldest_round() + rounds_at_once;
}

/// Of the next round, if it may begin. Before its sends, unless they have to wait for others', so
/// that what others have sent finds them.
bool Runner::begin_receives() {
  const int round = receiving_ + 1;
  if (!may_begin(round)) return false;
  const std::span receives = of_round(schedule_.receives, next_receive_, round);
  if (!may_come(receives)) return false;
  receiving_ = round;
  next_receive_ += receives.size();
  for (const Transfer& transfer : receives) receive(transfer);
  return true;
}

/// Once the receives of those before have begun, which bring what it sends. Its own may have to
/// wait, while those it sends to are ready.
bool Runner::begin_sends() {
  const int round = sending_ + 1;
  if (round == schedule_.rounds || round > receiving_ + 1) return false;
  const std::span sends = of_round(schedule_.sends, next_send_, round);
  if (!may_begin(round) && !only_passes_on(sends)) return false;
  if (!has_all(sends) || !may_follow(sends) || !may_leave(sends)) return false;
  sending_ = round;
  next_send_ += sends.size();
  if (call_.has_many_readers) {
    send_shared(sends);
  } else {
    send_each(sends);
  }
  return true;
}

/// What goes to other ranks than before would take its share of a link from what they wait for, as
/// in trees. To the same ranks it comes behind.
bool Runner::may_follow(std::span<const Transfer> sends) const {
  const bool is_first = std::none_of(messages_.begin(), messages_.end(),
                                     [](const Message& message) { return !message.is_received; });
  if (is_first || sends.empty()) return true;
  const auto end = schedule_.sends.begin() + static_cast<std::ptrdiff_t>(next_send_);
  return std::all_of(sends.begin(), sends.end(), [&](const Transfer& transfer) {
    return std::any_of(schedule_.sends.begin(), end, [&](const Transfer& before) {
      return before.round + 1 == transfer.round && before.peer == transfer.peer;
    });
  });
}

/// Where MPI brings blocks, what comes from other ranks than before would take its share of a link
/// from what is still on its way, and other ranks would have less than theirs.
bool Runner::may_come(std::span<const Transfer> receives) const {
  // Where many send at once they take no turns.
  return receives.size() != 1 || !is_by_mpi(receives.front().peer) ||
         have_come(receives.front().round, receives.front().peer);
}

/// The same of what goes to one rank after another in all-to-alls that block: a rank that is ahead
/// would soon have two that wait for it. So all that is long has come, and MPI has sent what went
/// to others, but for one chunk, which may be on its way while the first of these is encoded.
/// Whoever calls otherwise may look too late for that; in trees a rank that is late would hold up
/// others.
bool Runner::may_leave(std::span<const Transfer> sends) const {
  if (!takes_turns() || sends.size() != 1 || !is_by_mpi(sends.front().peer)) return true;
  const int to = sends.front().peer;
  return have_come(sends.front().round, MPI_PROC_NULL) &&
         std::ranges::all_of(leaving_, [to](const Leaving& one) { return one.to == to; });
}

bool Runner::takes_turns() const {
  return is_driven_ && blocks_.task().op == schedule::Op::alltoall;
}

/// In rounds before this, by MPI and from ranks but for this one: all that is long?
bool Runner::have_come(int round, int but) const {
  const auto is_on_its_way = [](const Message& message) {
    if (!message.is_received || message.bytes < least_crowding) return false;
    const ReceiveRequest* const entry = message.receive.get();
    if (entry && entry->is_followed()) return !entry->is_over();
    const Incoming* const incoming = entry ? entry->receive.core().incoming() : nullptr;
    return !message.is_complete || (incoming && !incoming->has_come());
  };
  return std::ranges::none_of(messages_, [&](const Message& message) {
    return message.round < round && message.peer != but && is_on_its_way(message) &&
           is_by_mpi(message.peer);
  });
}

bool Runner::is_by_mpi(int peer) const {
  return job_.links.nearest(team_.world_rank(peer)) == link::Kind::channel;
}

/// Or has it come to nothing? What is kept need not be decoded for that, nor be here as a whole.
bool Runner::has_all(std::span<const Transfer> sends) const {
  const auto is_missing = [&](schedule::Block block) {
    return !shared_.is_kept(block) &&
           std::any_of(messages_.begin(), messages_.end(),
                       [&](const Message& message) { return message.block == block; });
  };
  return std::none_of(sends.begin(), sends.end(), [&](const Transfer& transfer) {
    const auto blocks = schedule_.blocks_of(transfer);
    return std::any_of(blocks.begin(), blocks.end(), is_missing);
  });
}

/// What others have encoded, and which is here, or goes on as it comes?
bool Runner::only_passes_on(std::span<const Transfer> sends) const {
  return std::ranges::all_of(sends, [&](const Transfer& transfer) {
    return std::ranges::all_of(schedule_.blocks_of(transfer), [&](schedule::Block block) {
      return blocks_.task().origin(block) != team_.rank() && shared_.is_kept(block);
    });
  });
}

void Runner::receive(const Transfer& transfer) {
  for (const schedule::Block block : schedule_.blocks_of(transfer)) {
    const Part part = blocks_.incoming(block);
    if (part.bytes > 0) receive(transfer.peer, part, block);
  }
}

/// No probe asks for messages of this communicator, so the receive goes straight to MPI.
void Runner::receive(int from, const Part& part, schedule::Block block) {
  Message message{true, receiving_, from, part.bytes};
  message.block = block;
  const ReceiveArguments arguments{part.data, part.count, part.type, comm_of(team_), &outcome_};
  ReceiveArguments posted = arguments;
  if (MpiReceive::may_need_watching(job_, arguments, encodes_anyway(called_))) {
    auto entry = std::make_shared<ReceiveRequest>(job_);
    const auto [opaque, alone] = shared_.to_keep(block);
    entry->receive.core().keep_in(opaque, alone);
    if (entry->receive.watch(called_, arguments, encodes_anyway(called_))) {
      entry->claim_buffer();
      if (job_.pacer.active()) entry->receive.core().travels_from(trace::now_ns());
      posted = entry->receive.posted();
      message.receive = std::move(entry);
    }
  }
  const int code = mpi::counted::Irecv(posted.buffer, posted.count, posted.type, from, tag_,
                                       posted.comm, &message.request);
  if (code != MPI_SUCCESS) return note(code);
  if (message.receive) message.receive->begin(message.request);
  messages_.push_back(std::move(message));
}

/// Those that devices may encode straight to slots, which no host waits for: all of a round at
/// once, and before the others, which may be waited for here.
void Runner::send_each(std::span<const Transfer> transfers) {
  if (keeps_devices_busy()) count_driven(transfers.size());
  LaunchBatch batch(job_);
  std::vector<Departure> held;
  // Asked once: sending may find that a link does not reach a rank after all.
  std::vector<bool> are_near;
  for (const Transfer& transfer : transfers) are_near.push_back(is_near_to(transfer.peer));
  for (const bool is_near : {true, false}) {
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (are_near[i] == is_near) send(transfers[i], batch, held);
    }
    batch.launch();
    for (Departure& one : held) start(std::move(one));
    held.clear();
  }
}

/// Where a host has more ranks than processors, advance() may not be called often enough for that.
bool Runner::keeps_devices_busy() const { return is_driven_ && !Backoff::is_oversubscribed(); }

/// `messages`: of this rank's, in the round that begins. Where somebody drives them.
void Runner::count_driven(std::size_t messages) {
  const schedule::Op op = blocks_.task().op;
  const bool has_one_sender = op == schedule::Op::bcast || op == schedule::Op::scatter;
  const std::size_t senders = has_one_sender ? 1 : job_.endpoints.ranks_here();
  // Results of a sum leave while summands come.
  const bool is_summed = coding_ && coding_->is_summed;
  const int at_once = is_summed ? rounds_at_once : std::min(schedule_.rounds, rounds_at_once);
  driven_ = {std::max<std::size_t>(messages * senders * static_cast<std::size_t>(at_once), 1),
             messages};
}

/// Do payloads for this rank leave a device without this process's host?
bool Runner::is_near_to(int peer) const { return job_.hands_devices_to_mpi() || !is_by_mpi(peer); }

/// What waits for the batch is `held`, and what goes to the same rank behind it.
void Runner::send(const Transfer& transfer, LaunchBatch& batch, std::vector<Departure>& held) {
  bool waits = false;
  for (const schedule::Block block : schedule_.blocks_of(transfer)) {
    const Part part = blocks_.outgoing(block);
    if (part.bytes == 0) continue;
    const std::size_t added = batch.added();
    Departure departure{transfer.peer, std::nullopt};
    if (has(block)) departure.out = prepare(transfer.peer, part, {}, &batch);
    waits = waits || batch.added() > added;
    if (waits) {
      held.push_back(std::move(departure));
    } else {
      start(std::move(departure));
    }
  }
}

/// What should have come may not have.
bool Runner::has(schedule::Block block) const {
  const bool is_own = blocks_.task().origin(block) == team_.rank();
  return is_own ? has_own_ : code_ == MPI_SUCCESS || shared_.is_kept(block);
}

/// All of a round: those that get the same block next, in the order in which each gets them.
void Runner::send_shared(std::span<const Transfer> transfers) {
  if (keeps_devices_busy()) {
    std::unordered_set<schedule::Block> blocks;
    for (const Transfer& transfer : transfers) {
      for (const schedule::Block block : schedule_.blocks_of(transfer)) blocks.insert(block);
    }
    count_driven(blocks.size());
  }
  LaunchBatch batch(job_);
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
    send_shared(block, readers, batch);
  }
  batch.launch();
}

void Runner::send_shared(schedule::Block block, std::span<const int> readers, LaunchBatch& batch) {
  const Part part = blocks_.outgoing(block);
  if (part.bytes == 0) return;
  SharedBlocks::Sending sending;
  const bool is_here = has(block);
  if (is_here) sending = shared_.send(block, part, readers, tag_, driven_, batch);
  note(sending.code);
  if (sending.begun) {
    Message message{false, sending_};
    message.send = std::move(sending.begun);
    messages_.push_back(std::move(message));
    return;
  }
  for (const int reader : readers) {
    if (is_here && sending.code == MPI_SUCCESS) {
      start({reader, prepare(reader, part, sending.raw_for, nullptr)});
    } else {
      tell_failure(reader);
    }
  }
}

Outcome Runner::outcome() const {
  Outcome all = outcome_;
  if (shared_.lost()) all.add(*shared_.lost());
  return all;
}

/// Nothing where it cannot be sent.
std::optional<Outgoing> Runner::prepare(int to, const Part& part,
                                        std::optional<trace::Reason> raw_for, LaunchBatch* batch) {
  const SendArguments arguments{part.data,      part.count,   part.type, to,
                                comm_of(team_), std::nullopt, &outcome_};
  const SendCall call{called_, call_.family, true, raw_for, coding_, batch, driven_};
  Outgoing out = prepare_send(job_, call, arguments);
  if (out.error == MPI_SUCCESS) return out;
  note(out.error);
  return std::nullopt;
}

void Runner::start(Departure&& departure) {
  if (!departure.out) return tell_failure(departure.to);
  Outgoing& out = *departure.out;
  Message message{false, sending_, departure.to};
  int code = MPI_SUCCESS;
  if (out.data) {
    message.send = std::make_shared<SendOperation>(job_, std::move(out.data), out.comm);
    code = message.send->start(mpi::counted::Isend, out, tag_);
  } else {
    const SendArguments& use = out.arguments;
    code = mpi::counted::Isend(use.buffer, use.count, use.type, use.destination, tag_, use.comm,
                               &message.request);
    message.frame = std::move(out.frame);
  }
  if (code != MPI_SUCCESS) return note(code);
  messages_.push_back(std::move(message));
}

void Runner::tell_failure(int to) {
  Message message{false, sending_};
  const int code =
      mpi::counted::Isend(nullptr, 0, MPI_BYTE, to, tag_, comm_of(team_), &message.request);
  if (code != MPI_SUCCESS) return note(code);
  messages_.push_back(std::move(message));
}

void Runner::withdraw() {
  for (Message& message : messages_) {
    if (message.request == MPI_REQUEST_NULL) continue;
    if (message.is_received) mpi::calls().Cancel(&message.request);
    mpi::calls().Wait(&message.request, MPI_STATUS_IGNORE);
  }
  messages_.clear();
}

bool Runner::is_coming() const {
  return std::none_of(messages_.begin(), messages_.end(),
                      [](const Message& one) { return one.is_received && !one.is_complete; });
}

bool Runner::is_all_coming() const {
  return have_all_begun() &&
         std::none_of(messages_.begin(), messages_.end(), [this](const Message& one) {
           if (!one.is_received) return false;
           const std::shared_ptr<ReceivedBlock> opaque = shared_.to_keep(*one.block).opaque;
           return !opaque || !opaque->has_begun();
         });
}

bool Runner::needs_host() const {
  return std::any_of(messages_.begin(), messages_.end(),
                     [](const Message& one) { return one.send && one.send->needs_host(); });
}

void Runner::look() {
  const bool has_begun = have_all_begun();
  std::erase_if(leaving_, [&](const Leaving& one) {
    return has_begun || job_.links.channel.outbox.under_way(one.operation) <= 1;
  });
  if (messages_.empty()) return;
  // Who waits for this call waits for all of its messages: those that are offered are given time
  // while anything else is missing.
  const int oldest = oldest_round();
  const bool waits_for_offers =
      is_awaited_ && std::all_of(messages_.begin(), messages_.end(), [&](const Message& one) {
        return one.round > oldest || (one.send && one.send->is_offered());
      });
  for (Message& message : messages_) {
    if (message.send) message.send->await(waits_for_offers);
  }
  std::erase_if(messages_, [this](Message& message) { return is_over(message); });
  has_mpi_proceeded_ = false;
}

bool Runner::is_over(Message& message) {
  if (message.send) {
    if (!message.send->advance()) return false;
    note(message.send->ending().code);
    const bool has_one_reader = message.peer != MPI_PROC_NULL;
    if (has_one_reader && takes_turns() && is_by_mpi(message.peer)) {
      leaving_.push_back({message.send->operation(), message.peer});
    }
    return true;
  }
  ReceiveRequest* const entry = message.receive.get();
  // One that another receive overlaps is in the progress list.
  if (entry && entry->is_followed() && !entry->is_over()) return false;
  if (!message.is_complete) {
    // MPI polls the network for each test: once is enough for all messages.
    if (has_mpi_proceeded_ && !job_.peek.may_be_complete(message.request)) return false;
    has_mpi_proceeded_ = true;
    int is_complete = 0;
    message.code = mpi::test(&message.request, &is_complete, &message.status);
    message.is_complete = message.code != MPI_SUCCESS || is_complete != 0;
    if (!message.is_complete) return false;
  }
  note(message.code);
  if (message.code != MPI_SUCCESS) return true;
  if (entry && !entry->is_followed()) {
    entry->begin(MPI_REQUEST_NULL);  // MPI has completed it
    MpiReceive& receive = entry->receive;
    const bool collects = receive.core().incoming() || receive.collects(message.status);
    if (collects && !receive.core().advance()) return false;
  }
  if (entry) note(entry->finish(job_, message.status).code);
  // Its sender could not send it.
  if (message.is_received && mpi::counted::bytes_of(message.status) == 0) note(job_.device_code);
  return true;
}

bool Runner::wait_in_mpi() {
  // Where data may follow headers, this process may be needed meanwhile.
  if (messages_.empty() || !leaving_.empty() || job_.expects_data() || !job_.progress.idle())
    return false;
  Message* oldest = nullptr;
  for (Message& message : messages_) {
    // Also one whose data follows what has come.
    if (message.send || message.is_complete) return false;
    if (!oldest || message.round < oldest->round) oldest = &message;
  }
  if (have_all_begun()) {
    wait_for_all();
  } else {
    // One of the oldest round, as later ones may need what this rank is to send when that is over.
    wait_for(*oldest);
  }
  return true;
}

/// MPI_Waitsome of MPICH keeps the processor from the ranks that it waits for.
void Runner::wait_for(Message& message) {
  message.code = mpi::calls().Wait(&message.request, &message.status);
  message.is_complete = true;
  has_mpi_proceeded_ = true;
}

/// One after another, as far as they are short: what is long may have to be decoded while others
/// come.
void Runner::wait_for_all() {
  auto next = messages_.begin();
  do {
    wait_for(*next);
  } while (next->bytes < least_crowding && is_over(*next) && ++next != messages_.end());
  messages_.erase(messages_.begin(), next);
}

}  // namespace mpress::engine
