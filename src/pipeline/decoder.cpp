#include "pipeline/decoder.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "core/runtime.hpp"
#include "pipeline/received_block.hpp"
#include "pipeline/rooms.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class HostDecoder final : public Decoder {
 public:
  HostDecoder(Runtime& runtime, const Chunking& cut, std::byte* elements)
      : Decoder(runtime, cut), elements_(elements) {}

  std::byte* place_of(std::uint64_t chunk, std::size_t bytes) override {
    if (bytes <= cut_.raw_bytes(chunk)) return elements_ + cut_.offset(chunk);
    return chunk == taken_ ? aside() : nullptr;
  }

  void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_encoded) override {
    taken_ = chunk + arrived.chunks;
    if (!status_.is_ok()) return;
    std::byte* const place = elements_ + cut_.offset(chunk);
    if (!is_encoded) {
      if (arrived.data != place) std::memcpy(place, arrived.data, arrived.bytes);
      return;
    }
    const std::uint64_t begin = trace::now_ns();
    const std::byte* payload = arrived.data;
    // A payload among the elements makes way for what it decodes to.
    if (payload < elements_ + cut_.bytes() && payload + arrived.bytes > elements_) {
      payload = aside();
      if (!payload) status_ = Status::no_memory;
      if (!payload) return;
      std::memcpy(aside_.data(), arrived.data, arrived.bytes);
    }
    const codec::Status status =
        codec::decode(cut_.spec, cut_.type, payload, arrived.bytes, place, cut_.elements(chunk));
    decode_ns_ += trace::now_ns() - begin;
    cut_.note(trace::Kind::decode, chunk, begin, arrived.bytes);
    judge(chunk, status);
  }

  void skip(std::uint64_t chunk) override { taken_ = chunk + 1; }
  std::uint64_t settled() override { return taken_; }

 private:
  std::byte* aside() {
    if (!aside_) aside_ = runtime_.pool.take(cut_.room());
    return aside_.data();
  }

  std::byte* elements_;
  memory::Buffer aside_;
  std::uint64_t taken_ = 0;
};

class LeavingDecoder final : public Decoder {
 public:
  LeavingDecoder(Runtime& runtime, const Chunking& cut, ReceivedBlock& opaque, int device,
                 From from)
      : Decoder(runtime, cut),
        opaque_(opaque),
        device_(device),
        rooms_(runtime, device, from == From::rooms ? device : gpu::host, cut.room()) {}

  int memory_device() const override { return rooms_.memory_device(); }
  bool reads_devices() const override { return device_ != gpu::host; }

  /// Where it is kept, if links bring it to such memory.
  std::byte* place_of(std::uint64_t chunk, std::size_t) override {
    return memory_device() == device_ ? opaque_.place_for(chunk, cut_.room()) : rooms_.of(chunk);
  }
  void take(std::uint64_t chunk, const link::Arrived& arrived, bool) override {
    taken_ = chunk + arrived.chunks;
  }
  void skip(std::uint64_t chunk) override { taken_ = chunk + 1; }
  std::uint64_t settled() override { return taken_; }
  void give_back(std::uint64_t chunks) override { rooms_.give_back(chunks); }

 private:
  ReceivedBlock& opaque_;
  const int device_;  ///< whose the block's memory is, or the host
  Rooms rooms_;
  std::uint64_t taken_ = 0;
};

/// Every chunk goes the same place, so a link gets it for one at a time.
class NoDecoder final : public Decoder {
 public:
  using Decoder::Decoder;

  std::byte* place_of(std::uint64_t chunk, std::size_t) override {
    if (!nowhere_) nowhere_ = runtime_.pool.take(cut_.room());
    return chunk == taken_ ? nowhere_.data() : nullptr;
  }
  void take(std::uint64_t, const link::Arrived&, bool) override { ++taken_; }
  void skip(std::uint64_t) override { ++taken_; }
  std::uint64_t settled() override { return taken_; }

 private:
  memory::Buffer nowhere_;
  std::uint64_t taken_ = 0;
};

}  // namespace

void Decoder::judge(std::uint64_t chunk, codec::Status status) {
  if (status == codec::Status::ok || !status_.is_ok()) return;
  status_ = Status::corrupt;
  const bool payloads_tell = cut_.spec.codec == Codec::szp && cut_.spec.value == 0;
  const std::string what =
      cut_.message == trace::no_number
          ? "the frame"
          : "chunk " + std::to_string(chunk) + " of " + std::to_string(cut_.chunks());
  trace::say("rank " + std::to_string(runtime_.rank) + ": " + what + " from rank " +
             std::to_string(cut_.peer) + " (" + (payloads_tell ? "szp" : to_string(cut_.spec)) +
             ", " + std::to_string(cut_.count) + " " + element_name(cut_.type) +
             " elements) is corrupt: " + status_text(status));
}

std::unique_ptr<Decoder> host_decoder(Runtime& runtime, const Chunking& cut, std::byte* elements) {
  return std::make_unique<HostDecoder>(runtime, cut, elements);
}

std::unique_ptr<Decoder> leaving_decoder(Runtime& runtime, const Chunking& cut,
                                         ReceivedBlock& opaque, int device, From from) {
  return std::make_unique<LeavingDecoder>(runtime, cut, opaque, device, from);
}

std::unique_ptr<Decoder> no_decoder(Runtime& runtime, const Chunking& cut) {
  return std::make_unique<NoDecoder>(runtime, cut);
}

}  // namespace mpress::engine
