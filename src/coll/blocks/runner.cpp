#include "coll/blocks/runner.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/backoff.hpp"
#include "message/decision.hpp"

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

Runner::Runner(Messaging& messaging, Envelopes& envelopes, const Collective& call,
               trace::Called called, const Team& team, const schedule::Schedule& schedule,
               const BlockMap& blocks, bool is_failed, const Coding* coding)
    : messaging_(messaging),
      envelopes_(envelopes),
      call_(call),
      called_(called),
      team_(team),
      schedule_(schedule),
      blocks_(blocks),
      coding_(coding),
      shared_(messaging, envelopes, call, called, team, schedule, blocks, coding),
      is_failed_(is_failed) {}

bool Runner::advance() {
  look();
  while (begin_receives() || begin_sends()) look();
  return in_flight_.empty() && have_all_begun();
}

/// That is not over.
int Runner::oldest_round() const {
  int oldest = std::min(sending_, receiving_) + 1;
  for (const InFlight& message : in_flight_) oldest = std::min(oldest, message.round);
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
  const bool is_first = std::none_of(in_flight_.begin(), in_flight_.end(),
                                     [](const InFlight& message) { return !message.is_received; });
  if (is_first || sends.empty()) return true;
  const auto end = schedule_.sends.begin() + static_cast<std::ptrdiff_t>(next_send_);
  return std::all_of(sends.begin(), sends.end(), [&](const Transfer& transfer) {
    return std::any_of(schedule_.sends.begin(), end, [&](const Transfer& before) {
      return before.round + 1 == transfer.round && before.peer == transfer.peer;
    });
  });
}

/// Where the channel carries blocks, what comes from other ranks than before would take its share
/// of a link from what is still on its way, and other ranks would have less than theirs.
bool Runner::may_come(std::span<const Transfer> receives) const {
  // Where many send at once they take no turns.
  return receives.size() != 1 || !is_by_channel(receives.front().peer) ||
         have_come(receives.front().round, receives.front().peer);
}

/// The same of what goes to one rank after another in all-to-alls that block: a rank that is ahead
/// would soon have two that wait for it. So all that is long has come, and the channel has sent
/// what went to others, but for one chunk, which may be on its way while the first of these is
/// encoded. Whoever calls otherwise may look too late for that; in trees a rank that is late would
/// hold up others.
bool Runner::may_leave(std::span<const Transfer> sends) const {
  if (!takes_turns() || sends.size() != 1 || !is_by_channel(sends.front().peer)) return true;
  const int to = sends.front().peer;
  return have_come(sends.front().round, no_peer) &&
         std::ranges::all_of(leaving_, [to](const Leaving& one) { return one.to == to; });
}

bool Runner::takes_turns() const {
  return is_driven_ && blocks_.task().op == schedule::Op::alltoall;
}

/// In rounds before this, by the channel and from ranks but for this one: all that is long?
bool Runner::have_come(int round, int but) const {
  const auto is_on_its_way = [](const InFlight& message) {
    return message.is_received && message.bytes >= least_crowding && !message.envelope->has_come();
  };
  return std::ranges::none_of(in_flight_, [&](const InFlight& message) {
    return message.round < round && message.peer != but && is_on_its_way(message) &&
           is_by_channel(message.peer);
  });
}

bool Runner::is_by_channel(int peer) const {
  return messaging_.links.nearest(team_.world_rank(peer)) == link::Kind::channel;
}

/// Or has it come to nothing? What is kept need not be decoded for that, nor be here as a whole.
bool Runner::has_all(std::span<const Transfer> sends) const {
  const auto is_missing = [&](schedule::Block block) {
    return !shared_.is_kept(block) &&
           std::any_of(in_flight_.begin(), in_flight_.end(),
                       [&](const InFlight& message) { return message.block == block; });
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
  for (const schedule::Block block : schedule_.blocks_of(transfer)) receive(transfer.peer, block);
}

void Runner::receive(int from, schedule::Block block) {
  const BlockData place = blocks_.incoming(block);
  if (place.bytes == 0) return;
  const auto [opaque, alone] = shared_.to_keep(block);
  auto envelope = envelopes_.receive(place, from,
                                     {.called = called_,
                                      .may_be_encoded = encodes_anyway(called_),
                                      .kept_in = opaque,
                                      .is_kept_alone = alone,
                                      .outcome = &outcome_});
  in_flight_.push_back({std::move(envelope), true, receiving_, from, place.bytes, block});
}

/// Those that devices may encode straight to slots, which no host waits for: all of a round at
/// once, and before the others, which may be waited for here.
void Runner::send_each(std::span<const Transfer> transfers) {
  if (keeps_devices_busy()) count_driven(transfers.size());
  LaunchBatch batch(messaging_);
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
  const std::size_t senders = has_one_sender ? 1 : messaging_.endpoints.ranks_here();
  // Results of a sum leave while summands come.
  const bool is_summed = coding_ && coding_->is_summed;
  const int at_once = is_summed ? rounds_at_once : std::min(schedule_.rounds, rounds_at_once);
  driven_ = {std::max<std::size_t>(messages * senders * static_cast<std::size_t>(at_once), 1),
             messages};
}

/// Do payloads for this rank leave a device without this process's host?
bool Runner::is_near_to(int peer) const {
  return messaging_.hands_devices_to_mpi() || !is_by_channel(peer);
}

/// What waits for the batch is `held`, and what goes to the same rank behind it.
void Runner::send(const Transfer& transfer, LaunchBatch& batch, std::vector<Departure>& held) {
  bool waits = false;
  for (const schedule::Block block : schedule_.blocks_of(transfer)) {
    Departure departure{transfer.peer, blocks_.outgoing(block), std::nullopt};
    if (departure.data.bytes == 0) continue;
    const std::size_t added = batch.added();
    if (has(block)) departure.prepared = prepare(transfer.peer, departure.data, {}, &batch);
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
  if (is_own) return !is_failed_;
  return (!is_failed_ && status_.is_ok()) || shared_.is_kept(block);
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
  LaunchBatch batch(messaging_);
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
  const BlockData data = blocks_.outgoing(block);
  if (data.bytes == 0) return;
  SharedBlocks::Sending sending;
  const bool is_here = has(block);
  if (is_here) sending = shared_.send(block, data, readers, driven_, batch);
  note(sending.status);
  if (sending.begun) {
    in_flight_.push_back({std::move(sending.begun), false, sending_});
    return;
  }
  for (const int reader : readers) {
    if (is_here && sending.status.is_ok()) {
      start({reader, data, prepare(reader, data, sending.raw_for, nullptr)});
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
std::optional<Prepared> Runner::prepare(int to, const BlockData& data,
                                        std::optional<trace::Reason> raw_for, LaunchBatch* batch) {
  messaging_.devices.look(data.data);
  messaging_.timings.collect();
  const std::uint64_t begin = trace::timeline.now();
  const SendCall call{called_, call_.family, true, raw_for, coding_, batch, driven_};
  Prepared prepared;
  if (!data.data && data.layout->contiguous) return prepared;  // whoever matches it refuses it
  Message message = block_message(call, data, team_.settings(), {});  // decide() locates it
  message.peer = team_.world_rank(to);
  message.outcome = &outcome_;
  const Decision decision = decide(messaging_, message);
  if (decision.is_plain) {
    prepared.row = &count_plain(messaging_, message, decision.choice.reason, begin, prepared.span);
    return prepared;
  }
  const Status status = prepare_counted(messaging_, message, decision.choice, begin, prepared);
  if (status.is_ok()) return prepared;
  note(status);
  return std::nullopt;
}

void Runner::start(Departure departure) {
  if (!departure.prepared) return tell_failure(departure.to);
  auto envelope = envelopes_.send(departure.data, std::move(*departure.prepared), departure.to);
  in_flight_.push_back({std::move(envelope), false, sending_, departure.to});
}

void Runner::tell_failure(int to) {
  in_flight_.push_back({envelopes_.send_nothing(to), false, sending_});
}

void Runner::withdraw() {
  for (InFlight& message : in_flight_) message.envelope->withdraw();
  in_flight_.clear();
}

bool Runner::is_coming() const {
  return std::ranges::none_of(in_flight_, [](const InFlight& one) {
    return one.is_received && !one.envelope->has_begun();
  });
}

bool Runner::is_all_coming() const {
  return have_all_begun() &&
         std::none_of(in_flight_.begin(), in_flight_.end(), [this](const InFlight& one) {
           if (!one.is_received) return false;
           const std::shared_ptr<ReceivedBlock> opaque = shared_.to_keep(*one.block).opaque;
           return !opaque || !opaque->has_begun();
         });
}

bool Runner::needs_host() const {
  return std::ranges::any_of(in_flight_,
                             [](const InFlight& one) { return one.envelope->needs_host(); });
}

void Runner::look() {
  const bool has_begun = have_all_begun();
  std::erase_if(leaving_, [&](const Leaving& one) {
    return has_begun || messaging_.links.channel.outbox.under_way(one.operation) <= 1;
  });
  if (in_flight_.empty()) return;
  // Who waits for this call waits for all of its messages: those that are offered are given time
  // while anything else is missing.
  const int oldest = oldest_round();
  const bool waits_for_offers =
      is_awaited_ && std::ranges::all_of(in_flight_, [&](const InFlight& one) {
        return one.round > oldest || one.envelope->is_offered();
      });
  for (const InFlight& message : in_flight_) message.envelope->await(waits_for_offers);
  std::erase_if(in_flight_, [this](const InFlight& message) { return is_over(message); });
  envelopes_.end_round();
}

bool Runner::is_over(const InFlight& message) {
  Envelope& envelope = *message.envelope;
  if (!envelope.advance()) return false;
  note(envelope.status());
  const std::optional<std::uint64_t> operation = envelope.operation();
  const bool has_one_reader = message.peer != no_peer;
  if (operation && has_one_reader && takes_turns() && is_by_channel(message.peer)) {
    leaving_.push_back({*operation, message.peer});
  }
  return true;
}

bool Runner::wait() {
  // Where data may follow headers, this process may be needed meanwhile.
  const bool expects_data = messaging_.links.are_used() || messaging_.progress.is_threaded();
  if (in_flight_.empty() || !leaving_.empty() || expects_data || !messaging_.progress.idle()) {
    return false;
  }
  const bool can_wait = std::ranges::all_of(
      in_flight_, [](const InFlight& one) { return one.envelope->can_be_waited_for(); });
  if (!can_wait) return false;
  if (have_all_begun()) {
    wait_for_all();
  } else {
    // One of the oldest round, as later ones may need what this rank is to send when that is over.
    envelopes_.wait(*std::ranges::min_element(in_flight_, {}, &InFlight::round)->envelope);
  }
  return true;
}

/// One after another, as far as they are short: what is long may have to be decoded while others
/// come.
void Runner::wait_for_all() {
  auto next = in_flight_.begin();
  do {
    envelopes_.wait(*next->envelope);
  } while (next->bytes < least_crowding && is_over(*next) && ++next != in_flight_.end());
  in_flight_.erase(in_flight_.begin(), next);
}

}  // namespace mpress::engine
