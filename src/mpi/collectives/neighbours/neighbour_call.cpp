#include "mpi/collectives/neighbours/neighbour_call.hpp"

#include <algorithm>
#include <optional>

#include "mpi/job/job.hpp"

namespace mpress::engine {

policy::LinkCosts links_of(const Job& job, const Team& team) {
  const bool is_network = team.hosts().count() > 1;
  policy::LinkCosts costs =
      is_network ? job.collective_costs.host.between : job.collective_costs.host.within;
  costs.is_network = is_network;
  return costs;
}

namespace {

/// May any process have a block that is long enough to be encoded? All know alike.
bool may_encode(const Job& job, const Exchange& exchange) {
  const auto longest = std::ranges::max_element(exchange.sizes);
  return longest != exchange.sizes.end() && *longest >= least_long(job);
}

/// By what all members know alike.
const Way& way_of(const Job& job, const Exchange& exchange, const Team& team) {
  if (exchange.edges) return *exchange.edges;
  std::span<const std::size_t> sizes = exchange.sizes;
  if (exchange.is_direct) sizes = {};
  // From device to device long blocks have links that packed ones do not take.
  const bool encodes = may_encode(job, exchange);
  if (encodes && team.facts().is_true_for_any(Fact::may_see_gpus) && exchange.plans->is_free())
    sizes = {};
  return exchange.plans->way(exchange.pattern, sizes, encodes, links_of(job, team));
}

schedule::Task task_of(const Exchange& exchange, int members) {
  if (exchange.pattern == Pattern::allgather) return {schedule::Op::gather, members};
  return {schedule::Op::alltoall, static_cast<int>(exchange.places())};
}

Summand elements_of(const Part& part) {
  return {nullptr, static_cast<const std::byte*>(part.data)};
}

}  // namespace

ExchangeBlocks::ExchangeBlocks(const Exchange& exchange, const Way& way, int members)
    : BlockMap(task_of(exchange, members)), exchange_(exchange), way_(way) {}

NeighbourCall::NeighbourCall(Job& job, const Collective& call, const Exchange& exchange, Team& team,
                             const Served& served)
    : job_(job),
      call_(call),
      exchange_(exchange),
      team_(team),
      way_(way_of(job, exchange, team)),
      is_blocking_(served.is_blocking),
      tag_(team, served.tag),
      blocks_(exchange, way_, team.size()) {
  const std::optional<Asked>& asked = exchange.operands.asked;
  if (asked && asked->spec) coding_ = Coding{.spec = *asked->spec};
  if (exchange.coding) coding_ = *exchange.coding;
  if (way_.is_packed) {
    if (may_encode(job, exchange)) {
      frames_.emplace(job, call, called(), team, coding_ ? &*coding_ : nullptr);
    }
    packed_.emplace(job, called(), team, tag_.of_blocks(), exchange, way_,
                    frames_ ? &*frames_ : nullptr);
  }
}

trace::Called NeighbourCall::called() const {
  const auto algorithm =
      way_.is_packed ? schedule::Algorithm::combining : schedule::Algorithm::scattered;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

void NeighbourCall::start(FloatModes) {
  code_ = MPI_SUCCESS;
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
  } else if (raw_.emplace(job_, called(), call_.family, team_, tag_.of_blocks(), exchange_, way_,
                          coding_ ? &*coding_ : nullptr);
             raw_->may_serve()) {
    raw_->start();
  } else {
    raw_.reset();
    envelopes_ = team_.envelopes(job_, tag_.of_blocks());
    runner_.emplace(job_, *envelopes_, call_, called(), team_, way_.schedule, blocks_, false,
                    coding_ ? &*coding_ : nullptr);
    if (exchange_.keeps_payloads) keep_payloads();
    runner_->drive(is_blocking_);
    runner_->await(is_awaited_);
    runner_->advance();
  }
  code_ = copy_own(job_, exchange_);  // others wait for what is under way by now
  return true;
}

/// Before the first round.
void NeighbourCall::keep_payloads() {
  brought_.clear();
  for (const Part& part : exchange_.received) brought_.push_back(elements_of(part));
  const schedule::Schedule& schedule = way_.schedule;
  for (const schedule::Transfer& transfer : schedule.receives) {
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const auto opaque = std::make_shared<ReceivedBlock>(job_);
      runner_->shared().leave_in(schedule.blocks[i], opaque);
      const std::span slots = way_.passages.slots(i);
      const Part& part = exchange_.received[static_cast<std::size_t>(slots[0])];
      for (const int slot : slots) {
        brought_[static_cast<std::size_t>(slot)] = {opaque, elements_of(part).elements};
      }
    }
  }
}

bool NeighbourCall::is_all_coming() const {
  return runner_ && code_ == MPI_SUCCESS && runner_->status().is_ok() && runner_->is_all_coming();
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
int NeighbourCall::copy_again() {
  const schedule::Schedule& schedule = way_.schedule;
  int code = MPI_SUCCESS;
  for (const schedule::Transfer& transfer : schedule.receives) {
    for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
      const std::span slots = way_.passages.slots(i);
      if (is_kept(slots)) continue;
      for (std::size_t k = 1; k < slots.size() && code == MPI_SUCCESS; ++k) {
        const Part& from = exchange_.received[static_cast<std::size_t>(slots[0])];
        if (from.bytes > 0) {
          code = copy_part(job_, from, exchange_.received[static_cast<std::size_t>(slots[k])]);
        }
      }
    }
  }
  return code;
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
  const int code = packed_ ? packed_->code()
                   : raw_  ? raw_->code()
                           : job_.code_of(runner_->status());
  if (code_ == MPI_SUCCESS) code_ = code;
  if (runner_) bound_ = runner_->outcome().bound;
  if (raw_) bound_ = raw_->bound();
  if (frames_) bound_ = frames_->bound();
  if (!packed_ && code_ == MPI_SUCCESS) code_ = copy_again();
  runner_.reset();
  envelopes_.reset();
  raw_.reset();
  is_under_way_ = false;
  tag_.give();
  return true;
}

}  // namespace mpress::engine
