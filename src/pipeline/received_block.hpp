// An opaque block whose chunks come, to be passed on, decoded from here, or added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

/// Takes the chunks in order, for a decoder or in its place, by one thread at a time. A device
/// copies those that are there at the same time by one launch, but for those that it publishes one
/// by one. No call waits but end().
class ReceivedBlock final : public OpaqueBlock {
 public:
  explicit ReceivedBlock(Runtime& runtime) : OpaqueBlock(runtime) {}

  /// Before begin(): what finds it staging slots, in which those that it is passed on to find each
  /// chunk as soon as it is there; of a link whose slots devices publish.
  using FindStaging = std::function<StagingSlots(const Chunking& cut, int device)>;
  void pass_on_from(FindStaging find_staging) { find_staging_ = std::move(find_staging); }

  /// Chunks follow, for a buffer of `device` or the host. `cut.may_be_elements`: of those that
  /// come. `is_alone`: no decoder has the chunks. Then they are not passed on, so a payload may be
  /// longer than its elements; and it is an error, also of the block's, if they cannot be kept.
  /// Otherwise that is left incomplete then, and is an error of the block's alone where readers may
  /// have begun to take it.
  void begin(const Chunking& cut, int device, bool is_alone);

  /// Where a chunk is copied, of at most cut().room() bytes; null: there is no memory.
  std::byte* place_for(std::uint64_t chunk, std::size_t bytes) {
    return make_room(chunk, bytes) ? room_of(chunk) : nullptr;
  }

  /// Has it room for more work of a device?
  bool has_room() const { return works_.size() < most_works; }

  /// What has come: to its place, or to memory of the host, where the buffer is the host's, or the
  /// device reaches it. It stays there until it is settled.
  void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements);

  /// A chunk will not come, for a reason that `status` tells.
  void skip(std::uint64_t chunk, Status status);

  /// Begins to copy all that was taken.
  void launch();

  /// How many of the chunks are not needed any more where they came. Those before ready() are kept.
  std::uint64_t settled();

  /// No more is taken: waits until no device works at it.
  void end() { queue_ = {}; }

  /// Of what comes, where there is no decoder: the first failure.
  Status failure() const { return failure_; }

  /// Can it be sent: is it whole, or in staging slots where what is left to come will be found?
  bool may_leave() const {
    // It may become whole in between.
    const bool comes = has_begun() && staging_.link && !is_made_.load(std::memory_order_acquire);
    return comes || is_whole();
  }

  /// Staging slots that fail go with the block: this rank may still decode what is there.
  bool advance() override { return is_made_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t most_works = 8;

  struct Taken {
    std::size_t bytes;
    bool is_elements;
  };
  /// What a device copies at once.
  struct Work {
    gpu::Event event;
    std::uint64_t end;  ///< all chunks before it are kept then
  };

  bool keep(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements);
  void give_up(Status status);
  void settle(std::uint64_t end);

  FindStaging find_staging_;
  bool is_alone_ = false;
  bool is_given_up_ = false;
  Status failure_;
  Status block_failure_;           ///< which status() gives once no device works at the block
  std::uint64_t taken_ = 0;        ///< chunks
  std::uint64_t settled_ = 0;      ///< chunks
  std::vector<Taken> chunks_;      ///< that were taken
  std::vector<gpu::Copy> copies_;  ///< to be launched
  std::deque<Work> works_;         ///< under way
  QueueLease queue_;               ///< destroyed first: it uses what is above
};

}  // namespace mpress::engine
