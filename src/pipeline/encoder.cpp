#include "pipeline/encoder.hpp"

#include <cstring>

#include "codec/codec.hpp"
#include "core/runtime.hpp"
#include "gpu/codec_queue.hpp"

namespace mpress::engine {
namespace {

class HostEncoder final : public Encoder {
 public:
  using Encoder::Encoder;

  bool encodes_here() const override { return true; }

  gpu::State next(Made& made) override {
    const std::uint64_t begin = trace::now_ns();
    const std::size_t raw_bytes = cut_.raw_bytes(next_);
    const std::byte* const elements = region_.data + cut_.offset(next_);
    std::byte* const place = slots_.place(next_, cut_.encodes() ? cut_.payload_room() : raw_bytes);
    if (!place) {
      status_ = Status::no_memory;
      return gpu::State::failed;
    }
    made = {next_, 1, raw_bytes, false};
    if (cut_.encodes()) {
      const std::size_t bytes =
          codec::encode(cut_.spec, cut_.type, elements, cut_.elements(next_), place);
      made.is_encoded = slots_.pays(bytes, raw_bytes);
      if (made.is_encoded) made.bytes = bytes;
    }
    if (!made.is_encoded && slots_.takes_elements()) std::memcpy(place, elements, raw_bytes);
    took_ns_ += trace::now_ns() - begin;
    cut_.note(trace::Kind::encode, next_++, begin, made.bytes);
    return gpu::State::done;
  }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> host_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots) {
  return std::make_unique<HostEncoder>(runtime, cut, region, slots);
}

std::unique_ptr<Encoder> make_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots, LaunchBatch* batch) {
  if (region.device == gpu::host) return host_encoder(runtime, cut, region, slots);
  if (!slots.is_near()) return staging_encoder(runtime, cut, region, slots);
  const bool is_copied_out = !cut.encodes() && slots.is_on_host();
  return is_copied_out ? copying_encoder(runtime, cut, region, slots)
                       : near_encoder(runtime, cut, region, slots, batch);
}

bool resolve(Runtime& runtime, const Region& region, Spec& spec) {
  if (spec.codec == Codec::none) return true;
  if (region.device == gpu::host) {
    spec = codec::resolve(spec, region.type, region.data, region.count);
    return true;
  }
  const QueueLease queue = runtime.devices.queue(region);
  if (!queue) return false;
  spec = queue->codecs().resolve(spec, region.type, region.data, region.count);
  return true;
}

gpu::State wait_for_next(Encoder& encoder, Made& made) {
  gpu::State state = gpu::State::pending;
  await_device(encoder.device(), [&] {
    state = encoder.next(made);
    return state != gpu::State::pending;
  });
  return state;
}

}  // namespace mpress::engine
