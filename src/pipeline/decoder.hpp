// How chunks become a region again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/status.hpp"
#include "core/devices.hpp"
#include "core/status.hpp"
#include "link/link.hpp"
#include "pipeline/chunking.hpp"

namespace mpress::engine {

struct Runtime;
class ReceivedBlock;

/// Takes the chunks of one region, in order. None of its calls waits for a device but drain().
class Decoder : public link::ReceiveBuffers {
 public:
  Decoder(Runtime& runtime, const Chunking& cut) : runtime_(runtime), cut_(cut) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Does it take chunks from memory of devices, too?
  virtual bool reads_devices() const { return false; }

  /// Has it room for more?
  virtual bool has_room() { return true; }

  /// What has come: to its place, to any other memory of the host, or, for one that reads devices,
  /// on a device. It stays there until it is settled. `is_encoded`: a payload; else elements.
  virtual void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_encoded) = 0;

  /// No more is there now: what waited for more is begun.
  virtual void launch() {}

  /// A chunk will not come.
  virtual void skip(std::uint64_t chunk) = 0;

  /// How many of the chunks are where they belong.
  virtual std::uint64_t settled() = 0;

  /// The first `chunks` chunks are not needed any more where they came: what place_of() gave for
  /// them may be given again.
  virtual void give_back(std::uint64_t /*chunks*/) {}

  /// Waits until no device works at what was taken.
  virtual void drain() {}

  Status status() const { return status_; }  ///< the first that went wrong
  std::uint64_t decode_ns() const { return decode_ns_; }

 protected:
  /// Notes what a decoder found; tells where it is not ok.
  void judge(std::uint64_t chunk, codec::Status status);

  Runtime& runtime_;
  const Chunking cut_;
  Status status_;
  std::uint64_t decode_ns_ = 0;
};

/// Into host memory with room for cut.bytes(): links bring each chunk where its elements belong, as
/// far as it is no larger than they are, and it is decoded there.
std::unique_ptr<Decoder> host_decoder(Runtime& runtime, const Chunking& cut, std::byte* elements);

/// Where the chunks for a device come from.
enum class From : std::uint8_t {
  host,    ///< host memory
  device,  ///< memory that the device reaches
  near,    ///< memory of its own, where a payload may be read repeatedly
  rooms,   ///< the same, which the decoder has room in: a link copies them there
};

/// Into memory of `device`, behind what `behind` names. Null where it has no memory or no queue.
std::unique_ptr<Decoder> device_decoder(Runtime& runtime, const Chunking& cut, int device,
                                        std::byte* elements, From from,
                                        const Devices::Behind& behind = nullptr);

/// Leaves what comes to `opaque`, which has it in memory of `device` or the host's.
std::unique_ptr<Decoder> leaving_decoder(Runtime& runtime, const Chunking& cut,
                                         ReceivedBlock& opaque, int device, From from);

/// Drops what comes, as soon as there is memory to do so.
std::unique_ptr<Decoder> no_decoder(Runtime& runtime, const Chunking& cut);

}  // namespace mpress::engine
