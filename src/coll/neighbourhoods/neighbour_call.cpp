#include "coll/neighbourhoods/neighbour_call.hpp"

#include <algorithm>

#include "coll/blocks/copy_block.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

policy::LinkCosts links_of(const Messaging& messaging, const Team& team) {
  const bool is_network = team.hosts().count() > 1;
  const policy::CollectiveCosts& host = messaging.agreed_costs.host;
  policy::LinkCosts costs = is_network ? host.between : host.within;
  costs.is_network = is_network;
  return costs;
}

namespace {

/// May any member have a block that is long enough to be encoded? All know alike.
bool may_encode(const Messaging& messaging, const Exchange& exchange) {
  const auto longest = std::ranges::max_element(exchange.sizes);
  return longest != exchange.sizes.end() && *longest >= least_long(messaging.config);
}

/// By what all members know alike.
const Way& way_of(const Messaging& messaging, const Exchange& exchange, const Team& team) {
  if (exchange.edges) return *exchange.edges;
  std::span<const std::size_t> sizes = exchange.sizes;
  if (exchange.is_direct) sizes = {};
  // From device to device long blocks have links that packed ones do not take.
  const bool encodes = may_encode(messaging, exchange);
  if (encodes && team.facts().is_true_for_any(Fact::may_see_gpus) && exchange.plans->is_free())
    sizes = {};
  return exchange.plans->way(exchange.pattern, sizes, encodes, links_of(messaging, team));
}

schedule::Task task_of(const Exchange& exchange, int members) {
  if (exchange.pattern == Pattern::allgather) return {schedule::Op::gather, members};
  return {schedule::Op::alltoall, static_cast<int>(exchange.places())};
}

Summand elements_of(const BlockData& data) {
  return {nullptr, static_cast<const std::byte*>(data.data)};
}

}  // namespace

ExchangeBlocks::ExchangeBlocks(const Exchange& exchange, const Way& way, int members)
    : BlockMap(task_of(exchange, members)), exchange_(exchange), way_(way) {}

NeighbourCall::NeighbourCall(Messaging& messaging, const Collective& call, const Exchange& exchange,
                             Team& team, const Served& served)
    : messaging_(messaging),
      call_(call),
      exchange_(exchange),
      team_(team),
      way_(way_of(messaging, exchange, team)),
      is_blocking_(served.is_blocking),
      tag_(team, served.tag),
      blocks_(exchange, way_, team.size()),
      coding_(exchange.coding) {
  if (way_.is_packed) {
    if (may_encode(messaging, exchange)) {
      frames_.emplace(messaging, call_, called(), team, coding_ ? &*coding_ : nullptr);
    }
    packed_.emplace(messaging, called(), team, tag_.of_blocks(), exchange, way_,
                    frames_ ? &*frames_ : nullptr);
  }
}

trace::Called NeighbourCall::called() const {
  const auto algorithm =
      way_.is_packed ? schedule::Algorithm::combining : schedule::Algorithm::scattered;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

void NeighbourCall::start(FloatModes) {
  status_ = Status::ok;
  bound_ = 0;
  team_.take_hints();
  begin();
}

/// Unless another call has its tag.
bool NeighbourCall::begin() {
  if (!tag_.take()) return false;
  is_under_way_ = true;
  if (packed_) {
    packed_->start();
  } else if (raw_.emplace(messaging_, called(), call_.family, team_, tag_.of_blocks(), exchange_,
                          way_, coding_ ? &*coding_ : nullptr);
             raw_->may_serve()) {
    raw_->start();
  } else {
    raw_.reset();
    envelopes_ = team_.envelopes(messaging_, tag_.of_blocks());
    runner_.emplace(messaging_, *envelopes_, call_, called(), team_, way_.schedule, blocks_, false,
                    coding_ ? &*coding_ : nullptr);
    if (exchange_.keeps_payloads) keep_payloads();
    runner_->drive(is_blocking_);
    runner_->await(is_awaited_);
    runner_->advance();
  }
  note(copy_own(messaging_, exchange_));  // others wait for what is under way by now
  return true;
}

/// Before the first round.
void NeighbourCall::keep_payloads() {
  brought_.clear();
  for (const BlockData& data : exchange_.received) brought_.push_back(elements_of(data));
  const schedule::Schedule& schedule = way_.schedule;
  for (const schedule::Transfer& transfer : schedule.receives) {
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const auto opaque = std::make_shared<ReceivedBlock>(messaging_);
      runner_->shared().leave_in(schedule.blocks[i], opaque);
      const std::span slots = way_.passages.slots(i);
      const BlockData& data = exchange_.received[static_cast<std::size_t>(slots[0])];
      for (const int slot : slots) {
        brought_[static_cast<std::size_t>(slot)] = {opaque, elements_of(data).elements};
      }
    }
  }
}

bool NeighbourCall::is_all_coming() const {
  return runner_ && status_.is_ok() && runner_->status().is_ok() && runner_->is_all_coming();
}

std::vector<Summand> NeighbourCall::summands() const {
  std::vector<Summand> all;
  for (std::size_t i = 0; i < exchange_.received.size(); ++i) {
    if (exchange_.received[i].bytes == 0) continue;  // there is no such source
    Summand one = brought_.empty() ? elements_of(exchange_.received[i]) : brought_[i];
    if (one.opaque && !one.opaque->has_begun()) one.opaque = nullptr;
    all.push_back(std::move(one));
  }
  return all;
}

/// Has a block come as a payload that is kept?
bool NeighbourCall::is_kept(std::span<const int> slots) const {
  if (brought_.empty() || slots.empty()) return false;
  const Summand& one = brought_[static_cast<std::size_t>(slots[0])];
  return one.opaque && one.opaque->has_begun();
}

/// Copies each block that several neighbours stand for: a rank receives it once.
Status NeighbourCall::copy_again() {
  const schedule::Schedule& schedule = way_.schedule;
  Status status;
  for (const schedule::Transfer& transfer : schedule.receives) {
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const std::span slots = way_.passages.slots(i);
      if (is_kept(slots)) continue;
      for (std::size_t k = 1; k < slots.size() && status.is_ok(); ++k) {
        const BlockData& from = exchange_.received[static_cast<std::size_t>(slots[0])];
        if (from.bytes > 0) {
          status =
              copy_block(messaging_, from, exchange_.received[static_cast<std::size_t>(slots[k])]);
        }
      }
    }
  }
  return status;
}

void NeighbourCall::await(bool is_awaited) {
  is_awaited_ = is_awaited;
  if (runner_) runner_->await(is_awaited);
}

bool NeighbourCall::wait() {
  if (!is_under_way_) return false;
  if (packed_) return packed_->wait();
  return raw_ ? raw_->wait() : runner_->wait();
}

bool NeighbourCall::advance() {
  if (!is_under_way_ && !begin()) return false;
  if (packed_ ? !packed_->advance() : raw_ ? !raw_->advance() : !runner_->advance()) return false;
  note(packed_ ? packed_->status() : raw_ ? raw_->status() : runner_->status());
  if (runner_) bound_ = runner_->outcome().bound;
  if (raw_) bound_ = raw_->bound();
  if (frames_) bound_ = frames_->bound();
  if (!packed_ && status_.is_ok()) note(copy_again());
  runner_.reset();
  envelopes_.reset();
  raw_.reset();
  is_under_way_ = false;
  tag_.give();
  return true;
}

}  // namespace mpress::engine
