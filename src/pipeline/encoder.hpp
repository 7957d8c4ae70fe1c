// How a region becomes chunks in memory that somebody else supplies: a link, or a frame.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/region.hpp"
#include "core/status.hpp"
#include "gpu/queue.hpp"
#include "pipeline/chunking.hpp"

namespace mpress::engine {

struct Runtime;
class LaunchBatch;
class OpaqueBlock;

/// Copies of `bytes` bytes each, out to memory of the host, that a device is given ahead where
/// somebody looks for them: to give one takes the host 12 us, in which it does not see what comes.
/// Four chunks of `base` bytes, which is 1 MB unless the user says, take the bus 80 us.
constexpr std::size_t copies_ahead(std::size_t bytes, std::size_t base) {
  return std::max<std::size_t>(3, 4 * base / std::max<std::size_t>(bytes, 1));
}

/// The memory that chunks are written to.
class Slots {
 public:
  /// For chunk `chunk`, of `bytes` bytes; null: none now. The same until the encoder has given
  /// the chunk.
  virtual std::byte* place(std::uint64_t chunk, std::size_t bytes) = 0;

  /// Is a payload of `bytes` bytes worth it, in place of elements of `raw_bytes`?
  virtual bool pays(std::size_t bytes, std::size_t raw_bytes) const { return bytes < raw_bytes; }

  /// Do the elements of a chunk go there where its payload does not pay?
  virtual bool takes_elements() const { return true; }

  /// Can queues of the region's device write there at their full speed, for all chunks at once?
  virtual bool is_near() const { return false; }

  /// For slots that are near: do they lie in memory of the host? Copy engines write there best, and
  /// every chunk is published by itself, as its reader copies it meanwhile.
  virtual bool is_on_host() const { return false; }

  /// Does somebody look for chunks until all are made? A device need not be given all at once then.
  virtual bool is_driven() const { return false; }

  /// May the memory of a chunk be written to? Where somebody looks for chunks it may be another's
  /// that is still read.
  virtual bool is_free(std::uint64_t /*chunk*/) const { return true; }

  /// For slots that are near: where a device publishes a chunk, or the run that begins with it;
  /// null: it does not.
  virtual gpu::Report* report(std::uint64_t) { return nullptr; }

 protected:
  ~Slots() = default;
};

/// Chunks that lie in their slots: one, or a run of those that are not encoded.
struct Made {
  std::uint64_t first;
  std::uint64_t chunks;
  std::size_t bytes;  ///< of all
  bool is_encoded;    ///< a payload; else the elements as they are
};

/// The chunks of one region, made in order.
class Encoder {
 public:
  Encoder(Runtime& runtime, const Chunking& cut, const Region& region, Slots& slots)
      : runtime_(runtime), cut_(cut), region_(region), slots_(slots) {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  /// The next chunks, if they are ready. Never waits for a device. Not called again once it failed,
  /// or all are made.
  virtual gpu::State next(Made& made) = 0;

  /// Does next() encode in the calling thread?
  virtual bool encodes_here() const { return false; }

  /// Does the device publish chunks by itself? And has it been given all of them, so that it needs
  /// no host?
  virtual bool is_published_by_device() const { return false; }
  virtual bool is_given() const { return true; }

  int device() const { return region_.device; }

  /// Once it failed: a status.
  Status status() const { return status_; }

  /// What encoding took this process until now.
  std::uint64_t took_ns() const { return took_ns_; }

 protected:
  Runtime& runtime_;
  const Chunking cut_;
  const Region region_;
  Slots& slots_;
  Status status_;
  std::uint64_t took_ns_ = 0;
};

/// Makes the encoder of a region; `cut.spec` is resolved, but for a relative bound where the slots
/// are near. With codec none the elements go as they are. `slots` and the elements stay valid until
/// all is made. Null where the device has no memory or no queue, or refuses at once. Where there is
/// a `batch`, what a device is to encode may wait for its launch(): before that no chunk is ready,
/// and what the device refuses is found after it.
std::unique_ptr<Encoder> make_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots, LaunchBatch* batch = nullptr);

/// The kinds that it chooses from: in the calling thread; by a device in memory of its own, from
/// where payloads are copied to the slots; by a device in the slots themselves; and of elements
/// that are copied as they are to slots that are near and on the host.
std::unique_ptr<Encoder> host_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots);
std::unique_ptr<Encoder> staging_encoder(Runtime& runtime, const Chunking& cut,
                                         const Region& region, Slots& slots);
std::unique_ptr<Encoder> near_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots, LaunchBatch* batch);
std::unique_ptr<Encoder> copying_encoder(Runtime& runtime, const Chunking& cut,
                                         const Region& region, Slots& slots);

/// Of chunks that an opaque block has, or will have: copies them to the slots, in stream order
/// where a device publishes. `is_zero_copy`: they are sent from where they are, and it only tells
/// of them.
std::unique_ptr<Encoder> copying_encoder(Runtime& runtime,
                                         std::shared_ptr<const OpaqueBlock> opaque, Slots& slots,
                                         bool is_zero_copy);

/// The spec that encodes a region: a relative bound becomes absolute. False where a device refuses.
bool resolve(Runtime& runtime, const Region& region, Spec& spec);

/// Waits for the next chunks.
gpu::State wait_for_next(Encoder& encoder, Made& made);

}  // namespace mpress::engine
