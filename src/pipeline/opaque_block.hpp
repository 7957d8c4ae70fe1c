// A block as it travels: its origin encodes it once, whoever passes it on sends it as it came, and
// each reader decodes it once. So all readers get the same bits, whatever the links between them.
//
// An opaque block keeps the chunks of a block in memory of this process: those that its origin
// encodes (OwnBlock), or those that came (ReceivedBlock). Each is a payload shorter than its
// elements, or the elements; by any link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/chunking.hpp"
#include "pipeline/loss.hpp"

namespace mpress::engine {

struct Runtime;

class OpaqueBlock {
 public:
  /// Slots of a link that are the block's memory: a device writes straight to them, and publishes
  /// what is there. Until the block's end they are not used again.
  struct StagingSlots {
    link::Link* link = nullptr;  ///< null: the block has memory of its own
    link::Transfer transfer = {};
  };

  struct Chunk {
    const std::byte* data;
    std::size_t bytes;
    bool is_elements;
  };

  OpaqueBlock(const OpaqueBlock&) = delete;
  OpaqueBlock& operator=(const OpaqueBlock&) = delete;
  virtual ~OpaqueBlock();

  /// Makes chunks that are ready; where the calling thread encodes, one. Never waits. True when no
  /// more will be, nor come: see is_whole() and status(). Thread-safe.
  virtual bool advance() = 0;

  /// The slots in which all readers find it; without a link there are none. Else nothing more is
  /// sent.
  const StagingSlots& staging() const { return staging_; }

  /// Readers have heard of staging(), or will.
  void announce() { is_announced_ = true; }

  /// Does a device publish in staging() what is left to come? Of a block that is received: what
  /// this process gives it to copy there, which comes from other ranks.
  bool is_published_by_device() const { return is_published_by_device_; }

  const Chunking& cut() const { return cut_; }
  int device() const { return device_; }
  std::uint64_t ready() const { return ready_.load(std::memory_order_acquire); }
  Chunk chunk(std::uint64_t i) const {
    return {data_of(i), chunks_[i].bytes, chunks_[i].is_elements};
  }
  /// A chunk as a decoder takes it.
  link::Arrived arrived(std::uint64_t i) const;
  /// Is it known how it is cut?
  bool has_begun() const { return count_.load(std::memory_order_acquire) > 0; }
  bool is_whole() const { return has_begun() && ready() == count_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_; }  ///< of those that are there
  std::size_t longest() const;                  ///< of any chunk, as far as is known
  /// Of one that failed: a status.
  Status status() const { return status_.load(std::memory_order_acquire); }

  /// What encoding it loses, as far as this process knows: for reports.
  const Loss& loss() const { return loss_; }

  /// What encoding took, the first time that it is asked for.
  std::uint64_t claim_took_ns() { return took_ns_.exchange(0, std::memory_order_relaxed); }

  /// Of a whole opaque block of one payload: it, in one message, in host memory. Null where there
  /// is no memory for it or the message would be longer than the elements. Waits for a device that
  /// has to copy. Not thread-safe.
  const std::byte* frame(std::size_t& bytes);

 protected:
  explicit OpaqueBlock(Runtime& runtime) : runtime_(runtime) {}

  std::byte* room_of(std::uint64_t chunk) const;
  bool make_room(std::uint64_t chunk, std::size_t bytes);
  void make_chunks();
  void add(std::uint64_t chunk, std::size_t bytes, bool is_elements);
  gpu::Report* report_of(std::uint64_t chunk) const;

  Runtime& runtime_;
  Chunking cut_{};
  int device_ = gpu::host;
  StagingSlots staging_;
  bool is_announced_ = false;
  bool is_staging_over_ = false;
  bool is_published_by_device_ = false;
  std::atomic<bool> is_made_{true};  ///< no more will be, nor come
  std::atomic<Status> status_{Status()};
  Loss loss_;
  std::atomic<std::uint64_t> took_ns_{0};
  const std::byte* held_ = nullptr;  ///< elements of the program's

 private:
  struct Kept {
    memory::Buffer memory;
    std::size_t bytes = 0;
    bool is_elements = false;
  };

  const std::byte* data_of(std::uint64_t chunk) const {
    return held_ ? held_ + cut_.offset(chunk) : room_of(chunk);
  }

  std::vector<Kept> chunks_;
  std::atomic<std::uint64_t> count_{0};  ///< of them, once they have room: other threads may look
  std::atomic<std::uint64_t> ready_{0};
  std::size_t bytes_ = 0;
  memory::Buffer frame_;  ///< of what lies on a device
  std::size_t frame_bytes_ = 0;
};

}  // namespace mpress::engine
