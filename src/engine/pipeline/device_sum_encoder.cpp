// Sums of payloads that lie on a device.

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/pipeline/sum_encoder.hpp"

namespace mpress::engine {
namespace {

class DeviceSumEncoder final : public Encoder {
 public:
  DeviceSumEncoder(Job& job, const Chunking& cut, int device, Slots& slots,
                   std::vector<Summand> summands)
      : Encoder(job, cut, Region{cut.type, nullptr, cut.count, device}, slots),
        summands_(std::move(summands)) {}

  ~DeviceSumEncoder() override {
    if (queue_) queue_->drain();
  }

  /// False where the device refuses.
  bool open() {
    queue_ = job_.devices.queue(region_.device);
    return static_cast<bool>(queue_);
  }

  gpu::State next(Made& made) override {
    if (work_ == Work::none) {
      if (!std::ranges::all_of(summands_, [&](const Summand& one) { return is_there(one); })) {
        return gpu::State::pending;
      }
      begin_ns_ = trace::now_ns();
      if (!begin()) return failed(short_of_memory(job_, region_.device));
    }
    gpu::Outcome outcome;
    const gpu::State state = queue_->query(event_, &outcome);
    if (state == gpu::State::pending) return state;
    if (state == gpu::State::failed) return failed(refused(job_, region_.device));
    if (work_ == Work::quanta && !take(outcome)) {
      return work_ == Work::none ? failed(short_of_memory(job_, region_.device)) : gpu::State::pending;
    }
    if (work_ == Work::elements && !are_decoded()) return failed(job_.corrupt_code);
    const bool is_encoded = work_ == Work::quanta;
    made = {next_, 1, is_encoded ? sum_.bytes : cut_.raw_bytes(next_), is_encoded};
    took_ns_ += trace::now_ns() - begin_ns_;
    cut_.note(trace::Kind::encode, next_++, begin_ns_, made.bytes, region_.device);
    work_ = Work::none;
    return gpu::State::done;
  }

 private:
  enum class Work : unsigned char { none, quanta, elements };

  bool is_there(const Summand& one) const { return !one.opaque || one.opaque->ready() > next_; }
  bool is_payload(const Summand& one) const {
    return one.opaque && !one.opaque->is_elements(next_);
  }

  gpu::State failed(int code) {
    code_ = code;
    queue_->drain();
    return gpu::State::failed;
  }

  bool begin() {
    place_ = slots_.place(next_, cut_.room());
    if (!place_) return false;
    const bool are_payloads =
        std::ranges::all_of(summands_, [&](const Summand& one) { return is_payload(one); });
    if (!are_payloads) return add_elements();
    sum_ = summands_[0].opaque->chunk(next_);
    added_ = 1;
    return add_next();
  }

  /// The next summand, by turns to the chunk's place and to another, so that the last comes there.
  bool add_next() {
    const bool is_last_turn = (summands_.size() - 1 - added_) % 2 == 0;
    if (!is_last_turn && !scratch_) scratch_ = job_.devices.take(region_.device, cut_.room());
    std::byte* const to = is_last_turn ? place_ : scratch_.data();
    if (!to) return false;
    const OpaqueBlock::Chunk one = summands_[added_].opaque->chunk(next_);
    const gpu::Sum sum{sum_.data, sum_.bytes, one.data, one.bytes, cut_.elements(next_), to};
    event_ = queue_->add(cut_.spec, cut_.type, {&sum, 1});
    sum_.data = to;
    work_ = Work::quanta;
    return true;
  }

  /// A sum of two is there. True once it is that of all.
  bool take(const gpu::Outcome& outcome) {
    sum_.bytes = outcome.bytes;
    bool has_more = false;
    if (outcome.status != Status::ok) {
      has_more = add_elements();
    } else if (++added_ < summands_.size()) {
      has_more = add_next();
    } else if (sum_.bytes < cut_.raw_bytes(next_)) {
      return true;
    } else {
      has_more = add_elements();
    }
    if (!has_more) work_ = Work::none;
    return false;
  }

  /// Gives the queue all of it.
  bool add_elements() {
    const std::size_t raw_bytes = cut_.raw_bytes(next_);
    const std::size_t stride = (raw_bytes + 255) / 256 * 256;
    if (!decoded_) {
      decoded_ = job_.devices.take(region_.device,
                                   stride * std::min(summands_.size(), gpu::Queue::most_inputs));
    }
    if (!decoded_) return false;
    decoding_.clear();
    std::vector<const void*> inputs;
    for (const Summand& one : summands_) {
      if (inputs.size() == gpu::Queue::most_inputs) combine(inputs);
      std::byte* const room = decoded_.data() + inputs.size() * stride;
      if (is_payload(one)) {
        const OpaqueBlock::Chunk chunk = one.opaque->chunk(next_);
        decoding_.push_back(queue_->decode(cut_.spec, cut_.type, chunk.data, chunk.bytes, room,
                                           cut_.elements(next_)));
        inputs.push_back(room);
      } else if (one.opaque) {
        inputs.push_back(one.opaque->chunk(next_).data);
      } else {
        inputs.push_back(one.elements + cut_.offset(next_));
      }
    }
    combine(inputs);
    work_ = Work::elements;
    return true;
  }

  /// Of more than a launch takes, what is there so far is the first of the next.
  void combine(std::vector<const void*>& inputs) {
    event_ =
        queue_->combine(gpu::Combine::sum, cut_.type, inputs, place_, cut_.elements(next_), true);
    inputs.assign(1, place_);
  }

  bool are_decoded() {
    return std::ranges::all_of(decoding_, [&](gpu::Event event) {
      gpu::Outcome outcome;
      return queue_->query(event, &outcome) == gpu::State::done && outcome.status == Status::ok;
    });
  }

  const std::vector<Summand> summands_;
  std::uint64_t next_ = 0;  ///< chunk
  Work work_ = Work::none;  ///< what the chunk is being made of
  std::size_t added_ = 0;   ///< summands
  OpaqueBlock::Chunk sum_{};
  std::byte* place_ = nullptr;
  gpu::Event event_ = 0;
  std::vector<gpu::Event> decoding_;
  std::uint64_t begin_ns_ = 0;
  memory::Buffer scratch_;
  memory::Buffer decoded_;
  QueueLease queue_;
};

}  // namespace

std::unique_ptr<Encoder> device_sum_encoder(Job& job, const Chunking& cut, int device, Slots& slots,
                                            std::vector<Summand> summands) {
  auto encoder = std::make_unique<DeviceSumEncoder>(job, cut, device, slots, std::move(summands));
  if (!encoder->open()) return nullptr;
  return encoder;
}

}  // namespace mpress::engine
