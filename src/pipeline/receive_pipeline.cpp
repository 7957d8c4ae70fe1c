#include "pipeline/receive_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "core/runtime.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// What is in memory of this process already.
class Here : public link::Inbound {
 public:
  const char* problem() const override { return ""; }
  void acknowledge(std::uint64_t) override {}
  void finish(bool) override {}
  trace::Way way() const override { return trace::Way::whole; }
};

/// A payload that came with its header.
class Payload final : public Here {
 public:
  Payload(const std::byte* payload, std::size_t bytes) : arrived_{payload, bytes} {}
  gpu::State poll(std::uint64_t, link::Arrived& arrived) override {
    arrived = arrived_;
    return gpu::State::done;
  }

 private:
  const link::Arrived arrived_;
};

class Whole final : public Here {
 public:
  explicit Whole(const OpaqueBlock& opaque) : opaque_(opaque) {}
  gpu::State poll(std::uint64_t chunk, link::Arrived& arrived) override {
    arrived = opaque_.arrived(chunk);
    return gpu::State::done;
  }

 private:
  const OpaqueBlock& opaque_;
};

}  // namespace

ReceivePipeline::ReceivePipeline(Runtime& runtime, const Chunking& cut,
                                 std::unique_ptr<Decoder> decoder, int device)
    : runtime_(runtime),
      cut_(cut),
      device_(decoder->reads_devices() ? device : gpu::host),
      decoder_(std::move(decoder)),
      began_ns_(trace::timeline.now()) {}

void ReceivePipeline::open(link::Link& link, link::Route route, std::uint64_t begin_ns) {
  const std::uint64_t chunks = cut_.chunks();
  opened_ns_ = trace::now_ns();
  // Devices that publish payloads ask nobody whether their elements would take less; what MPI
  // carries was looked at, and is never longer than its elements.
  may_come_raw_ = route.kind == link::Kind::channel || cut_.may_be_elements;
  begin_keeping();
  inbound_ =
      link.receive({cut_.peer, route, chunks, cut_.chunk_bytes, cut_.raw_bytes(chunks - 1),
                    !cut_.encodes(), device_, decoder_.get(), &runtime_.links.channel, begin_ns});
}

void ReceivePipeline::open(const std::byte* payload, std::size_t bytes) {
  inbound_ = std::make_unique<Payload>(payload, bytes);
  begin_keeping();
}

void ReceivePipeline::open(const OpaqueBlock& opaque) {
  inbound_ = std::make_unique<Whole>(opaque);
  may_come_raw_ = cut_.may_be_elements;
}

/// What is not encoded can be had from where it goes.
void ReceivePipeline::keep_in(std::shared_ptr<ReceivedBlock> opaque, bool is_alone) {
  if (!cut_.encodes()) return;
  kept_ = std::move(opaque);
  is_kept_alone_ = is_alone;
}

void ReceivePipeline::begin_keeping() {
  if (!kept_) return;
  Chunking cut = cut_;
  cut.may_be_elements = may_come_raw_;
  kept_->begin(cut, device_, is_kept_alone_);
}

bool ReceivePipeline::advance() {
  if (is_over_) return true;
  while (taken_ < cut_.chunks() && take_next()) {
  }
  if (kept_) kept_->launch();
  give_kept();
  decoder_->launch();
  const std::uint64_t settled = this->settled();
  // What is kept is decoded from there.
  const std::uint64_t read = kept_ ? std::max(settled, kept_->ready()) : settled;
  decoder_->give_back(read);
  if (settled < cut_.chunks()) {
    inbound_->acknowledge(read);
    return false;
  }
  if (longest_.data && status().is_ok() && inbound_->way() == trace::Way::peer) {
    runtime_.linked_rate.measure(runtime_, cut_.peer, longest_.device, longest_.data,
                                 longest_.bytes, "a message");
  }
  // A device that failed may have acknowledged, or not.
  const bool by_flag = decoder_->status().is_ok();
  if (!by_flag) decoder_->drain();
  if (kept_ && !kept_->failure().is_ok()) kept_->end();
  inbound_->finish(by_flag);
  if (opened_ns_ > 0) transfer_ns_ = trace::now_ns() - opened_ns_;
  return is_over_ = true;
}

/// Chunks that are where they belong.
std::uint64_t ReceivePipeline::settled() {
  const std::uint64_t decoded = decoder_->settled();
  return kept_ ? std::min(decoded, kept_->settled()) : decoded;
}

Status ReceivePipeline::status() const {
  if (!status_.is_ok()) return status_;
  if (!decoder_->status().is_ok()) return decoder_->status();
  return kept_ ? kept_->failure() : Status::ok;
}

/// Hands the next chunk to who has it first. False where it is not there yet, or there is no room.
bool ReceivePipeline::take_next() {
  if (kept_ ? !kept_->has_room() : !decoder_->has_room()) return false;
  if (!has_arrived_) {
    switch (inbound_->poll(taken_, arrived_)) {
      case gpu::State::pending: return false;
      case gpu::State::failed:
        refuse(inbound_->problem(),
               inbound_->is_corrupt() ? Status::corrupt : Status::device_failed);
        return true;
      case gpu::State::done: break;
    }
    if (!is_sound()) {
      inbound_->give_up();
      refuse("has a wrong size", Status::corrupt);
      return true;
    }
    has_arrived_ = true;
  }
  if (arrived_.device != gpu::host && device_ == gpu::host && !bring_to_host()) return false;
  if (!has_arrived_) return true;  // it could not come
  const bool is_raw =
      !cut_.encodes() || (may_come_raw_ && arrived_.bytes == cut_.raw_bytes(taken_));
  has_arrived_ = false;
  wire_bytes_ += arrived_.bytes;
  note_arrival();
  const bool is_there = arrived_.device != gpu::host && !arrived_.is_near;
  if (!cut_.encodes() && is_there && arrived_.bytes > longest_.bytes) longest_ = arrived_;
  if (!is_raw) note_bound();
  if (kept_) {
    kept_->take(taken_, arrived_, is_raw);
    waiting_.push_back({arrived_, is_raw});
    taken_ += arrived_.chunks;
  } else {
    taken_ += arrived_.chunks;
    give(arrived_, is_raw);
  }
  return true;
}

void ReceivePipeline::give(const link::Arrived& arrived, bool is_raw) {
  if (arrived.data) {
    decoder_->take(given_, arrived, !is_raw);
  } else {
    decoder_->skip(given_);
  }
  given_ += arrived.chunks;
}

/// What others get of this rank is on its way to them before it is decoded; and so it is read once
/// from where it came.
void ReceivePipeline::give_kept() {
  if (waiting_.empty()) return;
  const std::uint64_t settled = kept_->settled();
  for (; !waiting_.empty() && given_ < settled && decoder_->has_room(); waiting_.pop_front()) {
    const Waiting& next = waiting_.front();
    const bool is_kept = given_ < kept_->ready();
    give(is_kept ? kept_->arrived(given_) : next.arrived, next.is_raw);
  }
}

void ReceivePipeline::note_arrival() {
  if (!trace::timeline.is_on()) return;
  const std::uint64_t begin_ns = arrived_.begin_ns > 0 ? arrived_.begin_ns : began_ns_;
  for (std::uint64_t i = 0; i < arrived_.chunks; ++i) {
    cut_.note(trace::Kind::arrive, taken_ + i, begin_ns,
              arrived_.chunks > 1 ? cut_.raw_bytes(taken_ + i) : arrived_.bytes);
  }
  began_ns_ = trace::now_ns();
}

/// Before the decoder may decode the chunk where it lies. What comes to a device stays there.
void ReceivePipeline::note_bound() {
  if (!cut_.spec.lossy() || cut_.spec.value != 0) return;
  const double bound = arrived_.device == gpu::host
                           ? codec::told_bound(cut_.spec, arrived_.data, arrived_.bytes)
                           : Outcome::unknown;
  payload_bound_ = Outcome::looser(payload_bound_, bound);
}

double ReceivePipeline::bound() const {
  if (!cut_.spec.lossy()) return 0;
  if (cut_.spec.codec != Codec::szp) return Outcome::unknown;
  return cut_.spec.value != 0 ? cut_.spec.value : payload_bound_;
}

/// Is it as long as the header lets it be?
bool ReceivePipeline::is_sound() const {
  if (cut_.encodes()) return arrived_.bytes > 0 && arrived_.bytes <= cut_.room();
  const std::uint64_t end = taken_ + arrived_.chunks;
  return end <= cut_.chunks() &&
         arrived_.bytes ==
             std::min<std::uint64_t>(cut_.offset(end), cut_.bytes()) - cut_.offset(taken_);
}

/// A chunk on a device, for a decoder on the host. False while it is not there.
bool ReceivePipeline::bring_to_host() {
  std::byte* const place = decoder_->place_of(taken_, arrived_.bytes);
  if (!place) return false;
  if (!queue_) queue_ = runtime_.devices.queue(arrived_.device);
  if (queue_ && copying_ == 0) copying_ = queue_->copy(place, arrived_.data, arrived_.bytes);
  const gpu::State state = queue_ ? queue_->query(copying_) : gpu::State::failed;
  if (state == gpu::State::pending) return false;
  copying_ = 0;
  arrived_ = {place, arrived_.bytes};
  if (state == gpu::State::failed) {
    has_arrived_ = false;
    inbound_->give_up();
    refuse("did not come from its GPU", Status::device_failed);
  }
  return true;
}

/// The next chunk will not come. Says why, once; what went wrong is reported at the end, when
/// nothing of the message is left to come.
void ReceivePipeline::refuse(const std::string& why, Status status) {
  if (status_.is_ok()) {
    status_ = status;
    trace::say("rank " + std::to_string(runtime_.rank) + ": chunk " + std::to_string(taken_) +
               " of " + std::to_string(cut_.chunks()) + " from rank " + std::to_string(cut_.peer) +
               " " + why);
  }
  ++taken_;
  if (kept_) {
    kept_->skip(taken_ - 1, status);
    waiting_.push_back({{}, false});
  } else {
    give({}, false);
  }
}

}  // namespace mpress::engine
