#include "pipeline/sum_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/codec.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

class SumEncoder final : public Encoder {
 public:
  SumEncoder(Runtime& runtime, const Chunking& cut, Slots& slots, std::vector<Summand> summands,
             std::byte* decoded)
      : Encoder(runtime, cut, Region{cut.type, nullptr, cut.count}, slots),
        sum_(runtime, cut, std::move(summands)),
        decoded_(decoded) {}

  bool encodes_here() const override { return true; }

  gpu::State next(Made& made) override {
    if (sum_.ready() == next_) {
      status_ = sum_.status();
      return status_.is_ok() ? gpu::State::pending : gpu::State::failed;
    }
    const std::uint64_t begin = trace::now_ns();
    std::byte* const decoded = decoded_ ? decoded_ + cut_.offset(next_) : nullptr;
    std::byte* const place = slots_.place(next_, cut_.room());
    if (!place || !sum_.make(next_, place, decoded, made)) {
      status_ = Status::no_memory;
      return gpu::State::failed;
    }
    took_ns_ += trace::now_ns() - begin;
    cut_.note(trace::Kind::encode, next_++, begin, made.bytes);
    return gpu::State::done;
  }

 private:
  HostSum sum_;
  std::byte* const decoded_;
  std::uint64_t next_ = 0;
};

}  // namespace

bool HostSum::make(std::uint64_t chunk, std::byte* place, std::byte* decoded, Made& made) {
  made = {chunk, 1, 0, true};
  const std::size_t raw_bytes = cut_.raw_bytes(chunk);
  if (add_quanta(chunk, place, decoded, made.bytes) && made.bytes < raw_bytes) return true;
  made.is_encoded = false;
  made.bytes = raw_bytes;
  if (!add_elements(chunk, place ? place : decoded)) return false;
  if (place && decoded) std::memcpy(decoded, place, raw_bytes);
  return true;
}

bool HostSum::has_room(memory::Buffer& buffer, std::size_t bytes) {
  if (!buffer) buffer = runtime_.pool.take(bytes);
  return static_cast<bool>(buffer);
}

/// The sum's payload to `place`. False where it is not one of quanta.
bool HostSum::add_quanta(std::uint64_t chunk, std::byte* place, std::byte* decoded,
                         std::size_t& bytes) {
  std::vector<codec::Summand> some;
  for (SummandTurns turns(summands_.size()); !turns.are_over(); turns.next()) {
    const bool is_last = turns.end() == summands_.size();
    std::byte* to = turns.goes_to_place() ? place : nullptr;
    if (!to && !is_last) {
      memory::Buffer& scratch = scratch_[turns.goes_to_place() ? 1 : 0];
      if (!has_room(scratch, cut_.room())) return false;
      to = scratch.data();
    }
    for (std::size_t i = turns.begin(); i < turns.end(); ++i) {
      if (summands_[i].is_payload(chunk)) {
        const OpaqueBlock::Chunk one = summands_[i].opaque->chunk(chunk);
        some.push_back({one.data, one.bytes});
      } else {
        some.push_back({summands_[i].elements_of(cut_, chunk), 0, true});
      }
    }
    if (codec::add(cut_.spec, cut_.type, some, cut_.elements(chunk), to, bytes,
                   is_last ? decoded : nullptr) != codec::Status::ok) {
      return false;
    }
    some.assign(1, {to, bytes});
  }
  return true;
}

/// The sums of elements to `place`. All summands' have to be there at once.
bool HostSum::add_elements(std::uint64_t chunk, std::byte* place) {
  const std::size_t count = cut_.elements(chunk);
  const std::size_t bytes = cut_.raw_bytes(0);
  if (!has_room(sums_, summands_.size() * bytes)) return false;
  std::vector<const void*> inputs;
  for (const Summand& one : summands_) {
    std::byte* const decoded = sums_.data() + inputs.size() * bytes;
    if (!one.is_payload(chunk)) {
      inputs.push_back(one.elements_of(cut_, chunk));
      continue;
    }
    const OpaqueBlock::Chunk payload = one.opaque->chunk(chunk);
    const codec::Status status =
        codec::decode(cut_.spec, cut_.type, payload.data, payload.bytes, decoded, count);
    if (status != codec::Status::ok) return false;
    inputs.push_back(decoded);
  }
  codec::combine_in_any_order(codec::Combine::sum, cut_.type, inputs, place, count,
                              codec::grid_of(cut_.spec));
  return true;
}

std::uint64_t ready_chunks(std::span<const Summand> summands, const Chunking& cut) {
  std::uint64_t ready = cut.chunks();
  for (const Summand& one : summands) {
    if (one.opaque) ready = std::min(ready, one.opaque->ready());
  }
  return ready;
}

Status status_of(std::span<const Summand> summands) {
  for (const Summand& one : summands) {
    if (one.opaque && !one.opaque->status().is_ok()) return one.opaque->status();
  }
  return Status::ok;
}

std::unique_ptr<Encoder> sum_encoder(Runtime& runtime, const Chunking& cut, int device,
                                     Slots& slots, std::vector<Summand> summands,
                                     std::byte* decoded) {
  if (device != gpu::host) {
    return device_sum_encoder(runtime, cut, device, slots, std::move(summands), decoded);
  }
  return std::make_unique<SumEncoder>(runtime, cut, slots, std::move(summands), decoded);
}

}  // namespace mpress::engine
