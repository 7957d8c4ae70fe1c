#include "engine/coll/neighbours/neighbour_sum.hpp"

#include <algorithm>
#include <cstring>

#include "codec/float_environment.hpp"
#include "engine/job/job.hpp"
#include "mpi/objects/type_info.hpp"
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

NeighbourSum::NeighbourSum(Job& job, const Collective& call, const Exchange& exchange,
                           mpi::CommInfo& comm, Context& context, const Served& served)
    : job_(job),
      call_(call),
      exchange_(exchange),
      fold_(job, exchange.sum->result.count, exchange.sum->result.type, exchange.sum->type,
            exchange.sum->op) {
  const Spec spec = spec_of(job, exchange.operands, context);
  const bool encodes = may_encode_sum(job, exchange) && spec.codec == Codec::szp;
  const schedule::SumSchedule* const combined =
      exchange.is_direct
          ? nullptr
          : exchange.plans->sums(exchange.pattern, fold_.bytes(), encodes, links_of(job, context));
  if (combined) {
    packed_.emplace(job, called(), context, served.tag, exchange, *combined, fold_);
    return;
  }
  staged_.pattern = exchange.pattern;
  staged_.operands.asked.emplace();
  staged_.operands.asked->spec =
      encodes ? part_of_bound(spec, exchange.received.size()) : Spec{.codec = Codec::none};
  staged_.sent = exchange.sent;
  staged_.plans = exchange.plans;
  staged_.is_direct = true;
  staged_.received.resize(exchange.received.size());
  memory_ = job.pool.take(std::max<std::size_t>(exchange.received.size() * fold_.bytes(), 1));
  if (!memory_) mpi::fatal("no memory for the vectors of a reduction");
  for (std::size_t i = 0; i < exchange.received.size(); ++i) {
    if (exchange.received[i].bytes == 0) continue;  // there is no such source
    staged_.received[i] = {memory_.data() + i * fold_.bytes(), fold_.packed_count(),
                           fold_.packed_type(), fold_.bytes()};
  }
  straight_.emplace(job, call, staged_, comm, context, served);
}

trace::Called NeighbourSum::called() const {
  const auto algorithm =
      straight_ ? schedule::Algorithm::scattered : schedule::Algorithm::combining;
  return {call_.op, static_cast<std::uint8_t>(algorithm)};
}

void NeighbourSum::start(FloatModes modes) {
  code_ = MPI_SUCCESS;
  bound_ = 0;
  fold_.round_as(modes);
  straight_ ? straight_->start(modes) : packed_->start();
}

bool NeighbourSum::advance() {
  if (packed_) {
    if (!packed_->advance()) return false;
    code_ = packed_->code();
    return true;
  }
  if (!straight_->advance()) return false;
  code_ = straight_->code();
  bound_ =
      compute([&] { return straight_->bound() * static_cast<double>(exchange_.received.size()); });
  if (code_ == MPI_SUCCESS) code_ = fold();
  return true;
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
