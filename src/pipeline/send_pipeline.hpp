// A region, or an opaque block, on its way: its chunks are made in slots of a link, or copied
// there, and published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "link/link.hpp"
#include "pipeline/encoder.hpp"

namespace mpress::engine {

class SendPipeline final : private Slots {
 public:
  /// `transfer` has slots for all chunks, each with `cut.room()`; it is the pipeline's from now on.
  SendPipeline(Runtime& runtime, link::Link& link, const link::Transfer& transfer,
               const Chunking& cut)
      : runtime_(runtime), link_(link), transfer_(transfer), cut_(cut) {}
  SendPipeline(const SendPipeline&) = delete;
  SendPipeline& operator=(const SendPipeline&) = delete;
  ~SendPipeline();

  /// Begins with elements that stay valid until all is over; the slots are laid out. False where a
  /// device refuses, or memory is short: nothing was published. `batch`: as for make_encoder().
  /// `is_driven`: advance() is called until all is over, whether needs_host() or not.
  bool open(const Region& region, LaunchBatch* batch = nullptr, bool is_driven = false);

  /// The same of a block, whose chunks are there or will be, and of which the readers hear in any
  /// case. `is_zero_copy`: by the channel link, whose slots have no memory, from the block's own.
  void open(std::shared_ptr<const OpaqueBlock> opaque, bool is_zero_copy, bool is_driven);

  /// Waits for the first chunk. False where it failed: nothing was published. `bytes`: its size.
  bool make_first(std::size_t& bytes);

  /// Publishes what is ready; readers may have heard of the transfer, or will. Waits for nothing
  /// but a device that failed. True
  /// once the elements are not needed any more, and all is published, or will not come: readers
  /// learn of that, too.
  bool advance();

  /// Must somebody call advance() for the readers to get all?
  bool needs_host() const {
    return !is_over_ && !(encoder_->is_published_by_device() && encoder_->is_given());
  }

  /// Readers have heard of the transfer, and it will not come: in place of open() and advance().
  void fail();

  // Once advance() has returned true:
  Status status() const { return status_; }  ///< a status
  std::size_t sent_bytes() const { return sent_bytes_; }
  std::uint64_t took_ns() const { return took_ns_; }  ///< what encoding took this process

 private:
  std::byte* place(std::uint64_t chunk, std::size_t bytes) override;
  /// Elements are copied in runs, which take slots that lie one behind the other.
  bool is_near() const override {
    return transfer_.memory != nullptr || (transfer_.is_near && cut_.encodes());
  }
  bool is_on_host() const override { return transfer_.is_on_host; }
  bool is_driven() const override { return is_driven_; }
  bool is_free(std::uint64_t chunk) const override { return link_.is_free(transfer_, chunk); }
  gpu::Report* report(std::uint64_t chunk) override;
  void publish(const Made& made);
  void end();

  Runtime& runtime_;
  link::Link& link_;
  const link::Transfer transfer_;
  const Chunking cut_;
  std::unique_ptr<Encoder> encoder_;
  std::shared_ptr<const OpaqueBlock>
      zero_copy_of_;  ///< whose memory is sent from; null: the slots' is
  std::optional<Made> first_;
  std::uint64_t made_ = 0;  ///< chunks
  std::size_t sent_bytes_ = 0;
  std::uint64_t waited_ns_ = 0;  ///< for the first chunk
  std::uint64_t took_ns_ = 0;
  Status status_;
  bool is_driven_ = false;
  bool is_announced_ = false;  ///< whatever becomes of it
  bool is_over_ = false;
};

}  // namespace mpress::engine
