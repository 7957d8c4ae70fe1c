#include "engine/pipeline/sum_encoder.hpp"

#include <algorithm>
#include <utility>

#include "codec/codec.hpp"
#include "codec/szp/format.hpp"
#include "engine/job.hpp"

namespace mpress::engine {
namespace {

class SumEncoder final : public Encoder {
 public:
  SumEncoder(Job& job, const Chunking& cut, Slots& slots, std::vector<Summand> summands,
             bool in_any_order)
      : Encoder(job, cut, Region{cut.type, nullptr, cut.count}, slots),
        summands_(std::move(summands)),
        in_any_order_(in_any_order) {}

  bool encodes_here() const override { return true; }

  gpu::State next(Made& made) override {
    if (ready_chunks(summands_, cut_) == next_) {
      code_ = code_of(summands_);
      return code_ == MPI_SUCCESS ? gpu::State::pending : gpu::State::failed;
    }
    const std::uint64_t begin = trace::now_ns();
    made = {next_, 1, 0, true};
    std::byte* const place = slots_.place(next_, cut_.room());
    if (!place || !make(place, made)) {
      code_ = MPI_ERR_NO_MEM;
      return gpu::State::failed;
    }
    took_ns_ += trace::now_ns() - begin;
    cut_.note(trace::Kind::encode, next_++, begin, made.bytes);
    return gpu::State::done;
  }

 private:
  bool make(std::byte* place, Made& made) {
    const bool are_payloads =
        std::ranges::all_of(summands_, [&](const Summand& one) { return one.is_payload(next_); });
    if (are_payloads && add_quanta(place, made.bytes) && made.bytes < cut_.raw_bytes(next_)) {
      return true;
    }
    made.is_encoded = false;
    made.bytes = cut_.raw_bytes(next_);
    return in_any_order_ ? add_in_any_order(place) : add_elements(place);
  }

  bool has_room(memory::Buffer& buffer, std::size_t bytes) {
    if (!buffer) buffer = job_.pool.take(bytes);
    return static_cast<bool>(buffer);
  }

  /// The sum's payload to `place`. False where it is not one of quanta.
  bool add_quanta(std::byte* place, std::size_t& bytes) {
    std::vector<codec::szp::Summand> some;
    for (SummandTurns turns(summands_.size()); !turns.are_over(); turns.next()) {
      if (!turns.goes_to_place() && !has_room(scratch_, cut_.room())) return false;
      for (std::size_t i = turns.begin(); i < turns.end(); ++i) {
        const OpaqueBlock::Chunk one = summands_[i].opaque->chunk(next_);
        some.push_back({one.data, one.bytes});
      }
      std::byte* const to = turns.goes_to_place() ? place : scratch_.data();
      if (codec::szp::add(cut_.type, some, cut_.elements(next_), to, bytes) != Status::ok) {
        return false;
      }
      some.assign(1, {to, bytes});
    }
    return true;
  }

  /// The elements' sums to `place`.
  bool add_elements(std::byte* place) {
    const std::size_t count = cut_.elements(next_);
    if (!has_room(scratch_, cut_.room()) || !has_room(sums_, count * sizeof(double))) return false;
    auto* const sums = reinterpret_cast<double*>(sums_.data());
    codec::Combine how = codec::Combine::replace;
    for (const Summand& one : summands_) {
      const std::byte* elements = scratch_.data();
      if (!one.is_payload(next_)) {
        elements = one.elements_of(cut_, next_);
      } else {
        const OpaqueBlock::Chunk chunk = one.opaque->chunk(next_);
        const Status status =
            codec::decode(cut_.spec, cut_.type, chunk.data, chunk.bytes, scratch_.data(), count);
        if (status != Status::ok) return false;
      }
      codec::widen(how, cut_.type, sums, elements, count);
      how = codec::Combine::sum;
    }
    codec::narrow(cut_.type, place, sums, count);
    return true;
  }

  /// All elements have to be there at once.
  bool add_in_any_order(std::byte* place) {
    const std::size_t count = cut_.elements(next_);
    const std::size_t bytes = cut_.raw_bytes(0);
    if (!has_room(sums_, summands_.size() * bytes)) return false;
    std::vector<const void*> inputs;
    for (const Summand& one : summands_) {
      std::byte* const decoded = sums_.data() + inputs.size() * bytes;
      if (!one.is_payload(next_)) {
        inputs.push_back(one.elements_of(cut_, next_));
        continue;
      }
      const OpaqueBlock::Chunk chunk = one.opaque->chunk(next_);
      const Status status =
          codec::decode(cut_.spec, cut_.type, chunk.data, chunk.bytes, decoded, count);
      if (status != Status::ok) return false;
      inputs.push_back(decoded);
    }
    codec::combine_in_any_order(codec::Combine::sum, cut_.type, inputs, place, count,
                                cut_.spec.value);
    return true;
  }

  const std::vector<Summand> summands_;
  const bool in_any_order_;
  std::uint64_t next_ = 0;
  memory::Buffer scratch_;
  memory::Buffer sums_;
};

}  // namespace

std::uint64_t ready_chunks(std::span<const Summand> summands, const Chunking& cut) {
  std::uint64_t ready = cut.chunks();
  for (const Summand& one : summands) {
    if (one.opaque) ready = std::min(ready, one.opaque->ready());
  }
  return ready;
}

int code_of(std::span<const Summand> summands) {
  for (const Summand& one : summands) {
    if (one.opaque && one.opaque->code() != MPI_SUCCESS) return one.opaque->code();
  }
  return MPI_SUCCESS;
}

std::unique_ptr<Encoder> sum_encoder(Job& job, const Chunking& cut, int device, Slots& slots,
                                     std::vector<Summand> summands, bool in_any_order) {
  if (device != gpu::host) {
    return device_sum_encoder(job, cut, device, slots, std::move(summands), in_any_order);
  }
  return std::make_unique<SumEncoder>(job, cut, slots, std::move(summands), in_any_order);
}

}  // namespace mpress::engine
