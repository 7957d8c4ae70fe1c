#include "coll/neighbourhoods/neighbour_sum.hpp"

#include <algorithm>

#include "codec/float_environment.hpp"
#include "codec/sum_grid.hpp"
#include "coll/blocks/copy_block.hpp"
#include "message/block.hpp"
#include "message/messaging.hpp"
#include "pipeline/loss.hpp"
#include "pipeline/sum_encoder.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Do errors of the vectors add up to at most their sum in the result?
bool adds_errors(const Exchange::Sum& sum) {
  return sum.element && sum.how && *sum.how != codec::Combine::prod;
}

/// The codec of each source's vector: szp with its part of the bound. Other codecs have no bound
/// that could be shared, or none at all.
Spec part_of_bound(const Spec& whole, std::size_t sources) {
  if (sources == 0) return Spec{.codec = Codec::none};
  Spec part = whole;
  compute([&] { part.value = whole.value / static_cast<double>(sources); });
  return part;
}

}  // namespace

bool may_encode_sum(const Messaging& messaging, const Exchange& exchange) {
  return exchange.sum->result.bytes >= least_long(messaging.config) && adds_errors(*exchange.sum);
}

/// All vectors are on one grid, whatever they hold, and all processes know it. With a relative
/// bound it would follow from the range of all processes: each vector goes to processes that have
/// other sources, too.
std::optional<NeighbourSum::Quanta> NeighbourSum::quanta_of(const Spec& spec,
                                                            const Exchange& exchange) {
  const auto places = static_cast<int>(exchange.received.size());
  if (exchange.sum->how != codec::Combine::sum || spec.bound != Bound::abs || places < 2)
    return std::nullopt;
  const ElementType type = *exchange.sum->element;
  const auto grid = codec::blind_grid(type, spec.value, places);
  if (!grid || !codec::resolvable(type, grid->bound)) return std::nullopt;
  const double most = codec::covered(type, spec.value, places);
  return Quanta{*grid, codec::bound_of_sum(type, *grid, places, most)};
}

/// Of each source's vector.
Coding NeighbourSum::coding_of(const Spec& spec) const {
  if (!quanta_) return {.spec = part_of_bound(spec, exchange_.received.size())};
  Coding coding{.spec = spec, .is_summed = true};
  coding.spec.value = quanta_->grid.bound;
  coding.spec.slack = quanta_->grid.slack;
  coding.chunk_bytes = messaging_.chunks.is_open() ? messaging_.chunks.least_chunk_bytes() : 0;
  return coding;
}

NeighbourSum::NeighbourSum(Messaging& messaging, const Collective& call, const Exchange& exchange,
                           Team& team, const Served& served)
    : messaging_(messaging), call_(call), exchange_(exchange), fold_(*exchange.sum->fold) {
  const Spec spec = spec_of(messaging.config, exchange, team);
  const bool encodes = may_encode_sum(messaging, exchange) && spec.codec == Codec::szp;
  const schedule::SumSchedule* const combined =
      exchange.is_direct ? nullptr
                         : exchange.plans->sums(exchange.pattern, fold_.bytes(), encodes,
                                                links_of(messaging, team));
  if (combined) {
    packed_.emplace(messaging, called(), team, served.tag, exchange, *combined, fold_);
    return;
  }
  if (encodes) {
    quanta_ = quanta_of(spec, exchange);
    coding_ = coding_of(spec);
  }
  prepare_straight(team, served);
}

/// Behind the vectors that come there is room for a sum in quanta.
void NeighbourSum::prepare_straight(Team& team, const Served& served) {
  staged_.pattern = exchange_.pattern;
  staged_.sent = exchange_.sent;
  staged_.plans = exchange_.plans;
  staged_.is_direct = true;
  staged_.coding = coding_;
  const std::size_t places = exchange_.received.size();
  staged_.received.resize(places);
  place_vectors();
  if (quanta_) call_.has_many_readers = true;  // blocks that are summed are encoded as such
  straight_.emplace(messaging_, call_, staged_, team, served);
}

/// False where there is no memory for them: then others are sent what they wait for all the same.
bool NeighbourSum::place_vectors() {
  if (memory_) return true;
  const std::size_t places = staged_.received.size();
  memory_ = messaging_.pool.take(std::max<std::size_t>((places + 1) * fold_.bytes(), 1));
  std::size_t sources = 0;
  for (std::size_t i = 0; i < places; ++i) {
    if (exchange_.received[i].bytes == 0) continue;  // there is no such source
    staged_.received[i] = vector(i);
    ++sources;
  }
  staged_.keeps_payloads = quanta_ && sources > 1 && memory_;
  return static_cast<bool>(memory_);
}

/// In memory of this process's own.
BlockData NeighbourSum::vector(std::size_t place) const {
  return fold_.vector(memory_ ? memory_.data() + place * fold_.bytes() : nullptr);
}

trace::Called NeighbourSum::called() const {
  const auto algorithm =
      straight_ ? schedule::Algorithm::scattered : schedule::Algorithm::combining;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

void NeighbourSum::start(FloatModes modes) {
  status_ = Status::ok;
  bound_ = 0;
  has_come_ = false;
  sum_.reset();
  added_ = 0;
  fold_.round_as(modes);
  if (straight_) {
    if (!place_vectors()) status_ = Status::no_memory;
    straight_->start(modes);
  } else {
    packed_->start();
  }
}

bool NeighbourSum::advance() {
  if (packed_) {
    if (!packed_->advance()) return false;
    status_ = packed_->status();
    return true;
  }
  has_come_ = has_come_ || straight_->advance();
  if (!has_come_ && !straight_->is_all_coming()) return false;
  const bool adds = staged_.keeps_payloads && straight_->status().is_ok();
  if (adds && !add_some()) return false;
  if (!has_come_) return false;
  finish();
  return true;
}

/// Where nothing was encoded the order of the list is as good, and nothing is lost; unless the
/// program wants bits that do not depend on that.
void NeighbourSum::begin_sum() {
  std::vector<Summand> summands = straight_->summands();
  // A process that sends nothing encoded has decoded what came so: its quanta are the same.
  const bool is_any_encoded =
      compute([&] { return straight_->bound() > 0; }) ||
      std::ranges::any_of(summands, [](const Summand& one) { return one.opaque != nullptr; });
  if (!is_any_encoded && !exchange_.plans->hints().is_reproducible) return;
  const ElementType type = *exchange_.sum->element;
  const Chunking cut{coding_.spec,
                     type,
                     fold_.bytes() / element_size(type),
                     coding_.chunk_of(fold_.bytes()),
                     messaging_.rank,
                     next_number(messaging_)};
  const bool are_alike = std::ranges::all_of(summands, [&](const Summand& one) {
    return !one.opaque || (one.opaque->cut().count == cut.count &&
                           one.opaque->cut().chunk_bytes == cut.chunk_bytes);
  });
  if (!are_alike) status_ = Status::truncated;  // the program gave other lengths elsewhere
  sum_.emplace(messaging_, cut, std::move(summands));
}

/// A chunk of the sum in quanta, if it is ready. True once there is nothing left to add.
bool NeighbourSum::add_some() {
  if (!sum_) begin_sum();
  if (!sum_ || added_ == sum_->cut().chunks() || !status_.is_ok()) return true;
  if (sum_->ready() == added_) {
    status_ = sum_->status();
    return !status_.is_ok();
  }
  auto* const result = static_cast<std::byte*>(vector(staged_.received.size()).data);
  Made made;
  if (!sum_->make(added_, nullptr, result + sum_->cut().offset(added_), made)) {
    status_ = Status::no_memory;
    return true;
  }
  return ++added_ == sum_->cut().chunks();
}

void NeighbourSum::finish() {
  if (status_.is_ok()) status_ = straight_->status();
  if (sum_) {
    bound_ = quanta_->bound;
    if (status_.is_ok()) {
      note(messaging_.record.row({trace::Direction::complete, called(), trace::any_peer}),
           {true, bound_});
      status_ = copy_block(messaging_, vector(staged_.received.size()), exchange_.sum->result);
    }
  } else {
    bound_ = compute(
        [&] { return straight_->bound() * static_cast<double>(exchange_.received.size()); });
    if (status_.is_ok()) status_ = fold();
  }
  sum_.reset();
  straight_->drop_payloads();
}

/// In the order of the list.
Status NeighbourSum::fold() {
  std::byte* result = nullptr;
  for (const BlockData& source : staged_.received) {
    if (source.bytes == 0) continue;
    auto* const vector = static_cast<std::byte*>(source.data);
    if (result) {
      const Status status = fold_.combine(vector, result);
      if (!status.is_ok()) return status;
    } else {
      result = vector;
    }
  }
  if (!result) return Status::ok;
  return copy_block(messaging_, fold_.vector(result), exchange_.sum->result);
}

Status fold_own(Messaging& messaging, const Exchange& exchange) {
  const Exchange::Sum& sum = *exchange.sum;
  Fold& fold = *sum.fold;
  fold.round_as(FloatModes::of_thread());
  if (fold.bytes() == 0 || exchange.plans->own().empty()) return Status::ok;
  const memory::Buffer memory = messaging.pool.take(2 * fold.bytes());
  if (!memory) return Status::no_memory;
  const auto packed = [&](std::size_t at) {
    return fold.vector(memory.data() + at * fold.bytes());
  };
  std::size_t place = 0;
  for (const int neighbour : exchange.plans->own()) {
    Status status = copy_block(messaging, exchange.to(neighbour), packed(place));
    if (status.is_ok() && place == 1) status = fold.combine(packed(1).data, packed(0).data);
    if (!status.is_ok()) return status;
    place = 1;
  }
  return copy_block(messaging, packed(0), sum.result);
}

}  // namespace mpress::engine
