// Messages in one piece: a frame that MPI gets in place of the elements.

#include <utility>

#include "codec/codec.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "pipeline/encoder.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// One slot: the payload of a frame, behind room for its header.
class Frame final : public Slots {
 public:
  Frame(Messaging& messaging, int device) : messaging_(messaging), device_(device) {}

  std::byte* place(std::uint64_t, std::size_t bytes) override {
    const std::size_t room = wire::frame_bytes(bytes);
    if (!memory_) memory_ = messaging_.take_on_host(device_, room);
    return memory_ ? memory_.data() + wire::header_bytes : nullptr;
  }
  bool pays(std::size_t bytes, std::size_t raw_bytes) const override {
    return wire::frame_bytes(bytes) <= raw_bytes;
  }
  /// Those of the host's MPI has from the program's buffer, as does an MPI that takes devices'.
  bool takes_elements() const override { return device_ != gpu::host && !messaging_.gpu_aware; }

  memory::Buffer release() { return std::move(memory_); }

 private:
  Messaging& messaging_;
  const int device_;
  memory::Buffer memory_;
};

/// Tells the policy, and the timeline, what an encoder that ends now took and gave.
void note_encoded(Messaging& messaging, const Message& message, Codec codec, std::size_t bytes,
                  Reason reason, std::uint64_t took_ns) {
  messaging.policy.encoded(subject_of(messaging, message, codec), bytes > 0 ? bytes : message.bytes,
                           took_ns);
  if (!trace::timeline.is_on()) return;
  const std::uint64_t end = trace::now_ns();
  trace::timeline.note({.begin_ns = end - took_ns,
                        .end_ns = end,
                        .raw_bytes = message.bytes,
                        .wire_bytes = bytes,
                        .peer = message.peer,
                        .device = message.device,
                        .kind = trace::Kind::encode,
                        .codec = codec,
                        .reason = reason});
}

}  // namespace

Status prepare_eager(Messaging& messaging, const Message& message, const Spec& spec,
                     const Elements& elements, Prepared& prepared) {
  const Region& region = elements.region;
  if (const Status status = await(messaging, message.device, region.behind); !status.is_ok())
    return status;
  const std::uint64_t begin = trace::now_ns();
  Chunking cut{spec, region.type, region.count, region.bytes(), message.peer, trace::no_number};
  if (!resolve(messaging, region, cut.spec)) return refused(messaging, message.device);
  Frame frame(messaging, message.device);
  std::unique_ptr<Encoder> encoder = make_encoder(messaging, cut, region, frame);
  if (!encoder) {
    prepared.reason = Reason::memory;
    if (!frame.takes_elements()) return Status::ok;
    cut.spec.codec = Codec::none;
    encoder = make_encoder(messaging, cut, region, frame);
  }
  if (!encoder) return refused(messaging, message.device);
  Made made;
  if (wait_for_next(*encoder, made) != gpu::State::done) {
    if (encoder->status() != Status::no_memory || message.device != gpu::host) {
      return encoder->status();
    }
    prepared.reason = Reason::memory;
    return Status::ok;
  }
  prepared.is_frame = made.is_encoded;
  prepared.loss = Loss::of(spec, cut.spec, message.device, prepared.loss.measured);
  if (cut.encodes()) {  // what was not tried tells the policy nothing
    if (!made.is_encoded) prepared.reason = Reason::incompressible;
    prepared.took_ns = trace::now_ns() - begin;
    note_encoded(messaging, message, spec.codec,
                 made.is_encoded ? wire::frame_bytes(made.bytes) : 0, prepared.reason,
                 prepared.took_ns);
  }
  if (!made.is_encoded && !frame.takes_elements()) return Status::ok;
  prepared.memory = frame.release();
  prepared.data = prepared.memory.data();
  prepared.bytes = message.bytes;
  if (made.is_encoded) {
    const wire::Header header{cut.spec, cut.type, cut.count, made.bytes};
    prepared.bytes = wire::close_frame(header, messaging.nonce, prepared.memory.data());
  } else {
    prepared.data += wire::header_bytes;
  }
  return Status::ok;
}

}  // namespace mpress::engine
