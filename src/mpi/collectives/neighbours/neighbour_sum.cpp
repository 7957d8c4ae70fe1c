#include "mpi/collectives/neighbours/neighbour_sum.hpp"

#include <algorithm>
#include <cstring>

#include "codec/float_environment.hpp"
#include "codec/sum_grid.hpp"
#include "message/block.hpp"
#include "mpi/collectives/operations.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"
#include "pipeline/loss.hpp"
#include "pipeline/sum_encoder.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Do errors of the vectors add up to at most their sum in the result?
bool adds_errors(const Exchange::Sum& sum) {
  const auto type = mpi::type_info(sum.type);
  const bool is_number = type->is_predefined && type->element &&
                         type->size == element_size(*type->element);  // no pair, and not complex
  return is_number && (sum.op == MPI_SUM || sum.op == MPI_MIN || sum.op == MPI_MAX);
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

bool may_encode_sum(const Job& job, const Exchange& exchange) {
  return exchange.sum->result.bytes >= least_long(job) && adds_errors(*exchange.sum);
}

/// All vectors are on one grid, whatever they hold, and all processes know it. With a relative
/// bound it would follow from the range of all processes: each vector goes to processes that have
/// other sources, too.
std::optional<NeighbourSum::Quanta> NeighbourSum::quanta_of(const Spec& spec,
                                                            const Exchange& exchange) {
  const auto places = static_cast<int>(exchange.received.size());
  if (exchange.sum->op != MPI_SUM || spec.bound != Bound::abs || places < 2) return std::nullopt;
  const ElementType type = *mpi::type_info(exchange.sum->type)->element;
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
  coding.chunk_bytes = job_.chunks.is_open() ? job_.chunks.least_chunk_bytes() : 0;
  return coding;
}

NeighbourSum::NeighbourSum(Job& job, const Collective& call, const Exchange& exchange, Team& team,
                           const Served& served)
    : job_(job),
      call_(call),
      exchange_(exchange),
      fold_(job, exchange.sum->result.count, exchange.sum->result.type, exchange.sum->type,
            exchange.sum->op) {
  const Spec spec = spec_of(job, exchange.operands, team);
  const bool encodes = may_encode_sum(job, exchange) && spec.codec == Codec::szp;
  const schedule::SumSchedule* const combined =
      exchange.is_direct
          ? nullptr
          : exchange.plans->sums(exchange.pattern, fold_.bytes(), encodes, links_of(job, team));
  if (combined) {
    packed_.emplace(job, called(), team, served.tag, exchange, *combined, fold_);
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
  staged_.coding = &coding_;
  const std::size_t places = exchange_.received.size();
  staged_.received.resize(places);
  memory_ = job_.pool.take(std::max<std::size_t>((places + 1) * fold_.bytes(), 1));
  if (!memory_) mpi::fatal("no memory for the vectors of a reduction");
  std::size_t sources = 0;
  for (std::size_t i = 0; i < places; ++i) {
    if (exchange_.received[i].bytes == 0) continue;  // there is no such source
    staged_.received[i] = vector(i);
    ++sources;
  }
  staged_.keeps_payloads = quanta_ && sources > 1;
  if (quanta_) call_.has_many_readers = true;  // blocks that are summed are encoded as such
  straight_.emplace(job_, call_, staged_, team, served);
}

/// In memory of this process's own.
Part NeighbourSum::vector(std::size_t place) const {
  return {memory_.data() + place * fold_.bytes(), fold_.packed_count(), fold_.packed_type(),
          fold_.bytes()};
}

trace::Called NeighbourSum::called() const {
  const auto algorithm =
      straight_ ? schedule::Algorithm::scattered : schedule::Algorithm::combining;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

void NeighbourSum::start(FloatModes modes) {
  code_ = MPI_SUCCESS;
  bound_ = 0;
  has_come_ = false;
  sum_.reset();
  added_ = 0;
  fold_.round_as(modes);
  straight_ ? straight_->start(modes) : packed_->start();
}

bool NeighbourSum::advance() {
  if (packed_) {
    if (!packed_->advance()) return false;
    code_ = packed_->code();
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
  const ElementType type = *mpi::type_info(exchange_.sum->type)->element;
  const Chunking cut{coding_.spec,
                     type,
                     fold_.bytes() / element_size(type),
                     coding_.chunk_of(fold_.bytes()),
                     job_.rank,
                     next_number(job_)};
  const bool are_alike = std::ranges::all_of(summands, [&](const Summand& one) {
    return !one.opaque || (one.opaque->cut().count == cut.count &&
                           one.opaque->cut().chunk_bytes == cut.chunk_bytes);
  });
  if (!are_alike) code_ = MPI_ERR_TRUNCATE;  // the program gave other lengths elsewhere
  sum_.emplace(job_, cut, std::move(summands));
}

/// A chunk of the sum in quanta, if it is ready. True once there is nothing left to add.
bool NeighbourSum::add_some() {
  if (!sum_) begin_sum();
  if (!sum_ || added_ == sum_->cut().chunks() || code_ != MPI_SUCCESS) return true;
  if (sum_->ready() == added_) {
    code_ = job_.code_of(sum_->status());
    return code_ != MPI_SUCCESS;
  }
  auto* const result = static_cast<std::byte*>(vector(staged_.received.size()).data);
  Made made;
  if (!sum_->make(added_, nullptr, result + sum_->cut().offset(added_), made)) {
    code_ = MPI_ERR_NO_MEM;
    return true;
  }
  return ++added_ == sum_->cut().chunks();
}

void NeighbourSum::finish() {
  if (!straight_->status().is_ok()) code_ = job_.code_of(straight_->status());
  if (sum_) {
    bound_ = quanta_->bound;
    if (code_ == MPI_SUCCESS) {
      note(job_.record.row({trace::Direction::complete, called(), trace::any_peer}),
           {true, bound_});
      code_ = copy_part(job_, vector(staged_.received.size()), exchange_.sum->result);
    }
  } else {
    bound_ = compute(
        [&] { return straight_->bound() * static_cast<double>(exchange_.received.size()); });
    if (code_ == MPI_SUCCESS) code_ = fold();
  }
  sum_.reset();
  straight_->drop_payloads();
}

/// In the order of the list.
int NeighbourSum::fold() {
  std::byte* result = nullptr;
  for (const Part& part : staged_.received) {
    if (part.bytes == 0) continue;
    auto* const vector = static_cast<std::byte*>(part.data);
    if (result) {
      const int code = fold_.combine(vector, result);
      if (code != MPI_SUCCESS) return code;
    } else {
      result = vector;
    }
  }
  if (!result) return MPI_SUCCESS;
  return copy_part(job_, {result, fold_.packed_count(), fold_.packed_type(), fold_.bytes()},
                   exchange_.sum->result);
}

int fold_own(Job& job, const Exchange& exchange) {
  const Exchange::Sum& sum = *exchange.sum;
  Fold fold(job, sum.result.count, sum.result.type, sum.type, sum.op);
  if (fold.bytes() == 0 || exchange.plans->own().empty()) return MPI_SUCCESS;
  const memory::Buffer memory = job.pool.take(2 * fold.bytes());
  if (!memory) return MPI_ERR_NO_MEM;
  const auto packed = [&](std::size_t at) -> Part {
    return {memory.data() + at * fold.bytes(), fold.packed_count(), fold.packed_type(),
            fold.bytes()};
  };
  std::size_t place = 0;
  for (const int neighbour : exchange.plans->own()) {
    int code = copy_part(job, exchange.to(neighbour), packed(place));
    if (code == MPI_SUCCESS && place == 1) code = fold.combine(packed(1).data, packed(0).data);
    if (code != MPI_SUCCESS) return code;
    place = 1;
  }
  return copy_part(job, packed(0), sum.result);
}

}  // namespace mpress::engine
