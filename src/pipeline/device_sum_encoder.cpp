// Sums of payloads that lie on a device.

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "core/runtime.hpp"
#include "gpu/codec_queue.hpp"
#include "pipeline/sum_encoder.hpp"

namespace mpress::engine {
namespace {

/// Sets of chunks that are added at once, and are under way: one is reported while others are
/// worked at. What comes meanwhile makes the next one larger.
constexpr std::size_t most_sets = 3;
/// Payloads of a set: queues keep the outcomes of a few thousand.
constexpr std::size_t most_decoded = 1024;

class DeviceSumEncoder final : public Encoder {
 public:
  DeviceSumEncoder(Runtime& runtime, const Chunking& cut, int device, Slots& slots,
                   std::vector<Summand> summands, std::byte* decoded)
      : Encoder(runtime, cut, Region{cut.type, nullptr, cut.count, device}, slots),
        summands_(std::move(summands)),
        decoded_to_(decoded),
        chunks_(cut.chunks()) {}

  ~DeviceSumEncoder() override {
    if (queue_) queue_->drain();
  }

  /// False where the device refuses.
  bool open() {
    queue_ = runtime_.devices.queue(region_.device);
    return static_cast<bool>(queue_);
  }

  gpu::State next(Made& made) override {
    if (const Status status = begin_sets(); !status.is_ok()) return failed(status);
    for (Set& set : sets_) {
      const gpu::State state = advance(set);
      if (state == gpu::State::failed) return failed(refused(runtime_, region_.device));
      if (state == gpu::State::pending) break;
      if (!add_elements(set)) return failed(short_of_memory(runtime_, region_.device));
    }
    if (sets_.empty() || !sets_.front().is_added) return gpu::State::pending;
    Chunk& chunk = chunks_[next_];
    if (!chunk.is_sum) {
      const gpu::State state = queue_->query(chunk.event);
      if (state == gpu::State::failed) return failed(refused(runtime_, region_.device));
      if (state == gpu::State::pending) return state;
      if (!are_decoded(chunk)) return failed(Status::corrupt);
    }
    made = {next_, 1, chunk.is_sum ? chunk.sum.bytes : cut_.raw_bytes(next_), chunk.is_sum};
    cut_.note(trace::Kind::encode, next_++, sets_.front().begin_ns, made.bytes, region_.device);
    if (next_ == sets_.front().end) {
      took_ns_ += trace::now_ns() - sets_.front().begin_ns;
      sets_.pop_front();
    }
    return gpu::State::done;
  }

 private:
  /// One that is being made.
  struct Chunk {
    std::byte* place = nullptr;
    bool is_sum = false;       ///< so far it is one of quanta
    OpaqueBlock::Chunk sum{};  ///< of the summands that turns have added
    gpu::Event event = 0;      ///< of the last addition, or of adding up elements
    std::vector<gpu::Event> decoding = {};
    memory::Buffer inputs = {};  ///< where all elements lie, in any order
  };

  /// Chunks that are added at once.
  struct Set {
    std::uint64_t begin, end;
    std::uint64_t begin_ns;
    SummandTurns turns;
    bool is_added = false;  ///< or elements are, where quanta cannot tell
  };

  gpu::State failed(Status status) {
    status_ = status;
    queue_->drain();
    return gpu::State::failed;
  }

  /// Of what is there and no set has.
  Status begin_sets() {
    if (begun_ == chunks_.size() || sets_.size() == most_sets) return Status::ok;
    std::uint64_t ready = ready_chunks(summands_, cut_);
    if (ready == begun_) return status_of(summands_);
    ready = std::min(ready, begun_ + std::max<std::uint64_t>(most_decoded / summands_.size(), 1));
    Set set{begun_, ready, trace::now_ns(), SummandTurns(summands_.size())};
    begun_ = ready;
    if (!begin(set)) return short_of_memory(runtime_, region_.device);
    sets_.push_back(set);
    return Status::ok;
  }

  /// And its first turn.
  bool begin(const Set& set) {
    for (std::uint64_t i = set.begin; i < set.end; ++i) {
      Chunk& chunk = chunks_[i];
      chunk.place = slots_.place(i, cut_.room());
      if (!chunk.place) return false;
      chunk.is_sum = true;
    }
    stride_ = (cut_.room() + 255) / 256 * 256;
    if (!scratch_ && summands_.size() > codec::most_summands) {
      scratch_ = runtime_.devices.take(region_.device, stride_ * chunks_.size());
      if (!scratch_) return false;
    }
    begin_turn(set);
    return true;
  }

  /// Adds the turn's summands, of all chunks in few launches.
  void begin_turn(const Set& set) {
    std::vector<gpu::Summand> summands;
    summands.reserve(gpu::CodecQueue::most_pieces * codec::most_summands);
    std::vector<gpu::Sum> sums;
    std::vector<Chunk*> of;
    const auto launch = [&] {
      if (sums.empty()) return;
      gpu::Event event = queue_->codecs().add(cut_.spec, cut_.type, sums);
      for (Chunk* chunk : of) chunk->event = event++;
      summands.clear();
      sums.clear();
      of.clear();
    };
    for (std::uint64_t i = set.begin; i < set.end; ++i) {
      Chunk& chunk = chunks_[i];
      if (!chunk.is_sum) continue;
      const gpu::Summand* const first = summands.data() + summands.size();
      if (chunk.sum.data) summands.push_back({chunk.sum.data, chunk.sum.bytes});
      for (std::size_t k = set.turns.begin(); k < set.turns.end(); ++k) {
        if (summands_[k].is_payload(i)) {
          const OpaqueBlock::Chunk one = summands_[k].opaque->chunk(i);
          summands.push_back({one.data, one.bytes});
        } else {
          summands.push_back({summands_[k].elements_of(cut_, i), 0, nullptr, true});
        }
      }
      chunk.sum.data = set.turns.goes_to_place() ? chunk.place : scratch_.data() + i * stride_;
      sums.push_back({{first, summands.data() + summands.size()},
                      cut_.elements(i),
                      const_cast<std::byte*>(chunk.sum.data),
                      nullptr,
                      set.turns.end() == summands_.size() ? decoded_to(i) : nullptr});
      of.push_back(&chunk);
      if (sums.size() == gpu::CodecQueue::most_pieces) launch();
    }
    launch();
  }

  /// Done: no turn is under way. Elements may be, of chunks whose sums are none of quanta.
  gpu::State advance(Set& set) {
    while (!set.turns.are_over()) {
      const gpu::State state = end_turn(set);
      if (state != gpu::State::done) return state;
      set.turns.next();
      if (!set.turns.are_over()) begin_turn(set);
    }
    return gpu::State::done;
  }

  /// Is the turn over for all chunks of the set? Those whose sums are none of quanta are left to
  /// add_elements().
  gpu::State end_turn(const Set& set) {
    for (std::uint64_t i = set.begin; i < set.end; ++i) {
      Chunk& chunk = chunks_[i];
      if (!chunk.is_sum || chunk.event == 0) continue;
      gpu::Outcome outcome;
      const gpu::State state = queue_->query(chunk.event, &outcome);
      if (state != gpu::State::done) return state;
      chunk.event = 0;
      chunk.is_sum = outcome.status == codec::Status::ok;
      chunk.sum.bytes = outcome.bytes;
    }
    return gpu::State::done;
  }

  /// Of chunks whose sums are none of quanta, or no shorter than their elements; once. False: there
  /// is no memory.
  bool add_elements(Set& set) {
    if (std::exchange(set.is_added, true)) return true;
    const std::size_t raw_stride = (cut_.raw_bytes(0) + 255) / 256 * 256;
    for (std::uint64_t i = set.begin; i < set.end; ++i) {
      Chunk& chunk = chunks_[i];
      chunk.is_sum = chunk.is_sum && chunk.sum.bytes < cut_.raw_bytes(i);
      if (chunk.is_sum) continue;
      if (!decoded_)
        decoded_ = runtime_.devices.take(region_.device, raw_stride * summands_.size());
      if (!decoded_ || !add_elements_of(i, chunk, raw_stride)) return false;
    }
    return true;
  }

  std::byte* decoded_to(std::uint64_t i) const {
    return decoded_to_ ? decoded_to_ + cut_.offset(i) : nullptr;
  }

  /// In one launch, however many there are. False: there is no memory.
  bool add_elements_of(std::uint64_t i, Chunk& chunk, std::size_t raw_stride) {
    const std::size_t number = summands_.size();
    chunk.inputs = runtime_.devices.take_pinned(region_.device, number * sizeof(const void*));
    if (!chunk.inputs) return false;
    auto* const inputs = reinterpret_cast<const void**>(chunk.inputs.data());
    for (std::size_t k = 0; k < number; ++k) {
      inputs[k] = elements_of(summands_[k], i, chunk, decoded_.data() + k * raw_stride);
    }
    chunk.event = queue_->codecs().combine_in_any_order(
        gpu::Combine::sum, cut_.type, {inputs, number}, chunk.place, cut_.elements(i),
        codec::grid_of(cut_.spec));
    if (decoded_to_) {
      chunk.event = queue_->copy_near(decoded_to(i), chunk.place, cut_.raw_bytes(i));
    }
    return true;
  }

  /// Those of a summand's chunk: of a payload, decoded to `room`.
  const std::byte* elements_of(const Summand& one, std::uint64_t i, Chunk& chunk, std::byte* room) {
    if (!one.is_payload(i)) return one.elements_of(cut_, i);
    const OpaqueBlock::Chunk payload = one.opaque->chunk(i);
    chunk.decoding.push_back(queue_->codecs().decode(cut_.spec, cut_.type, payload.data,
                                                     payload.bytes, room, cut_.elements(i)));
    return room;
  }

  bool are_decoded(const Chunk& chunk) {
    return std::ranges::all_of(chunk.decoding, [&](gpu::Event event) {
      gpu::Outcome outcome;
      return queue_->query(event, &outcome) == gpu::State::done &&
             outcome.status == codec::Status::ok;
    });
  }

  const std::vector<Summand> summands_;
  std::byte* const decoded_to_;
  std::vector<Chunk> chunks_;
  std::deque<Set> sets_;     ///< under way
  std::uint64_t begun_ = 0;  ///< chunks
  std::uint64_t next_ = 0;   ///< chunk to be reported
  std::size_t stride_ = 0;
  memory::Buffer scratch_;
  memory::Buffer decoded_;
  QueueLease queue_;
};

}  // namespace

std::unique_ptr<Encoder> device_sum_encoder(Runtime& runtime, const Chunking& cut, int device,
                                            Slots& slots, std::vector<Summand> summands,
                                            std::byte* decoded) {
  auto encoder =
      std::make_unique<DeviceSumEncoder>(runtime, cut, device, slots, std::move(summands), decoded);
  if (!encoder->open()) return nullptr;
  return encoder;
}

}  // namespace mpress::engine
