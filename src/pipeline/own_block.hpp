// An opaque block at its origin, which encodes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "memory/buffer_pool.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

class OwnBlock final : public OpaqueBlock, private Slots {
 public:
  explicit OwnBlock(Runtime& runtime) : OpaqueBlock(runtime) {}

  /// Begins to encode a region, whose elements stay valid until advance() returns true, or lie in
  /// `packed`. `cut.spec` names a codec. False where memory is short, or the device refuses. Where
  /// there are `staging` slots and a `batch`, the device may get it with that.
  bool encode(const Chunking& cut, const Region& region, memory::Buffer packed,
              const StagingSlots& staging, LaunchBatch* batch = nullptr);

  /// The same with chunks that `made_by` makes, of any sources, which outlive that: in memory of
  /// `device`, or the host's.
  using MakeEncoder = std::function<std::unique_ptr<Encoder>(const Chunking& cut, Slots& slots)>;
  bool make(const Chunking& cut, int device, const StagingSlots& staging,
            const MakeEncoder& made_by);

  /// Elements on a device as they are, to be copied once for several readers. They stay valid while
  /// the block is sent.
  void hold(const Chunking& cut, const Region& region);

  /// `act` gets what encoding gave, in bytes, and took, once it is over without an error.
  void when_encoded(std::function<void(std::size_t bytes, std::uint64_t took_ns)> act) {
    when_encoded_ = std::move(act);
  }

  void set_loss(const Loss& loss) { loss_ = loss; }

  bool advance() override;

 private:
  std::byte* place(std::uint64_t chunk, std::size_t) override { return room_of(chunk); }
  gpu::Report* report(std::uint64_t chunk) override { return report_of(chunk); }
  bool is_on_host() const override { return staging().transfer.is_on_host; }
  bool is_near() const override { return device_ != gpu::host; }
  bool encode_next();
  void end();
  void fail_staging();

  std::mutex making_;
  std::function<void(std::size_t, std::uint64_t)> when_encoded_;
  memory::Buffer packed_;  ///< elements without gaps, while they are encoded
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace mpress::engine
