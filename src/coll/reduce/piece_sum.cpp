#include "coll/reduce/piece_sum.hpp"

#include <algorithm>
#include <utility>

#include "codec/codec.hpp"
#include "codec/combine.hpp"
#include "gpu/codec_queue.hpp"
#include "message/block.hpp"
#include "message/messaging.hpp"
#include "pipeline/sum_encoder.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// Elements that are combined between two looks at all else.
constexpr std::int64_t stretch = 1 << 18;

}  // namespace

PieceSum::PieceSum(const Of& of, int owner, const std::byte* own, std::int64_t count,
                   std::vector<int> sources)
    : of_(of),
      owner_(owner),
      own_(own),
      count_(count),
      sources_(std::move(sources)),
      has_payloads_(of.adds_quanta && bytes() >= wire::min_frame_bytes),
      combined_(count) {
  if (!has_payloads_) return;
  for (const int source : sources_) {
    opaque_.push_back(source == of_.self ? nullptr
                                         : std::make_shared<ReceivedBlock>(of_.messaging));
  }
}

std::int64_t PieceSum::stride() const {
  const auto grain = static_cast<std::int64_t>(256 / width());
  return (count_ + grain - 1) / grain * grain;
}

std::size_t PieceSum::own_index() const {
  return static_cast<std::size_t>(std::ranges::lower_bound(sources_, of_.self) - sources_.begin());
}

int PieceSum::slot(int source) const {
  const auto index = std::ranges::lower_bound(sources_, source) - sources_.begin();
  return static_cast<int>(index) - (source > of_.self ? 1 : 0);
}

/// Elements that a source has brought.
const std::byte* PieceSum::brought_by(std::size_t source) const {
  const int rank = sources_[source];
  if (rank == of_.self) return own_;
  return brought_ + static_cast<std::size_t>(slot(rank) * stride()) * width();
}

void PieceSum::expect(SharedBlocks& shared, std::span<const int> from, int ranks) {
  if (!has_payloads_) return;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const int rank = sources_[i];
    if (!opaque_[i] || !std::ranges::binary_search(from, rank)) continue;
    const auto size = static_cast<schedule::Block>(ranks);
    const auto block =
        static_cast<schedule::Block>(rank) * size + static_cast<schedule::Block>(owner_);
    shared.leave_in(block, opaque_[i]);
  }
}

Chunking PieceSum::cut() const {
  return {of_.coding.spec,
          of_.reduction.type,
          static_cast<std::uint64_t>(count_),
          of_.coding.chunk_of(bytes()),
          of_.messaging.rank,
          trace::no_number};
}

void PieceSum::add(const OpaqueBlock::StagingSlots& staging, std::byte* decoded) {
  std::vector<Summand> summands;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const bool is_encoded = opaque_[i] && opaque_[i]->has_begun();
    summands.push_back(is_encoded ? Summand{opaque_[i]} : Summand{nullptr, brought_by(i)});
  }
  sum_ = std::make_shared<OwnBlock>(of_.messaging);
  Chunking numbered = cut();
  numbered.message = next_number(of_.messaging);
  const auto make = [&](const Chunking& cut, Slots& slots) {
    return sum_encoder(of_.messaging, cut, of_.device, slots, std::move(summands), decoded);
  };
  if (sum_->make(numbered, of_.device, staging, make)) return;
  sum_.reset();
  note(short_of_memory(of_.messaging, of_.device));
}

void PieceSum::combine(std::byte* result) {
  result_ = result;
  combined_ = 0;
}

bool PieceSum::advance() {
  if (sum_) {
    const bool is_over = sum_->advance();
    if (is_over) note(sum_->status());
    return is_over;
  }
  if (combined_ == count_ || !status_.is_ok()) return true;
  if (of_.device != gpu::host) return combine_on_device();
  combine_some();
  return combined_ == count_;
}

void PieceSum::combine_some() {
  const std::int64_t count = std::min(stretch, count_ - combined_);
  const std::size_t offset = static_cast<std::size_t>(combined_) * width();
  std::vector<const void*> inputs;
  for (std::size_t i = 0; i < sources_.size(); ++i) inputs.push_back(brought_by(i) + offset);
  const auto number = static_cast<std::size_t>(count);
  if (is_in_any_order()) {
    codec::combine_in_any_order(of_.reduction.how, of_.reduction.type, inputs, result_ + offset,
                                number, grid());
  } else {
    // What a codec has changed is no sum of MPI's any more.
    const FloatModes modes = of_.coding.spec.lossy() ? FloatModes() : of_.modes;
    codec::combine_all(of_.reduction.how, of_.reduction.type, inputs, result_ + offset, number,
                       false, modes);
  }
  combined_ += count;
}

/// True once the device has done it, or failed.
bool PieceSum::combine_on_device() {
  if (!queue_) {
    queue_ = of_.messaging.devices.queue(of_.device);
    if (!queue_) {
      note(refused(of_.messaging, of_.device));
      return true;
    }
    if (!is_in_any_order()) {
      give_in_order();
    } else if (!give_in_any_order()) {
      note(short_of_memory(of_.messaging, of_.device));
      queue_ = {};
      return true;
    }
  }
  const gpu::State state = queue_->query(event_);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) note(refused(of_.messaging, of_.device));
  queue_ = {};
  combined_ = count_;
  return true;
}

/// That of payloads, to which elements are taken as well.
codec::Grid PieceSum::grid() const {
  return of_.adds_quanta ? codec::grid_of(of_.coding.spec) : codec::Grid{};
}

/// Of more than a launch takes, what is there so far is the first of the next. The own elements
/// come first where they have to make room for that.
void PieceSum::give_in_order() {
  const std::size_t own = own_index();
  const bool is_first = result_ == own_ && own >= gpu::CodecQueue::most_inputs;
  std::vector<const void*> inputs;
  if (is_first) inputs.push_back(own_);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (is_first && i == own) continue;
    if (inputs.size() == gpu::CodecQueue::most_inputs) {
      give(inputs);
      inputs.assign(1, result_);
    }
    inputs.push_back(brought_by(i));
  }
  give(inputs);
}

/// All at once, however many. False: there is no memory.
bool PieceSum::give_in_any_order() {
  const std::size_t number = sources_.size();
  inputs_ = of_.messaging.devices.take_pinned(of_.device, number * sizeof(const void*));
  if (!inputs_) return false;
  auto* const inputs = reinterpret_cast<const void**>(inputs_.data());
  for (std::size_t i = 0; i < number; ++i) inputs[i] = brought_by(i);
  event_ =
      queue_->codecs().combine_in_any_order(of_.reduction.how, of_.reduction.type, {inputs, number},
                                            result_, static_cast<std::size_t>(count_), grid());
  return true;
}

void PieceSum::give(std::span<const void* const> inputs) {
  event_ = queue_->codecs().combine(of_.reduction.how, of_.reduction.type, inputs, result_,
                                    static_cast<std::size_t>(count_), false);
}

}  // namespace mpress::engine
