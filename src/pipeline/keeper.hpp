// Chunks that are kept as they came, in an opaque block, so that they can be passed on or added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "pipeline/chunking.hpp"
#include "pipeline/received_block.hpp"

namespace mpress::engine {

/// Takes the chunks of one block, in order, for a decoder or in its place. A device copies those
/// that are there at the same time by one launch, but for those that it publishes one by one. No
/// call waits but drain().
class Keeper {
 public:
  /// For a buffer of `device`, or of the host. `is_alone`: no decoder has the chunks. Then they are
  /// not passed on, so a payload may be longer than its elements; and it is an error, also of the
  /// block's, if they cannot be kept. Otherwise that is left incomplete then, and is an error of
  /// the block's alone where readers may have begun to take it.
  Keeper(Runtime& runtime, const Chunking& cut, std::shared_ptr<ReceivedBlock> opaque, int device,
         bool is_alone);

  /// How many of the chunks are kept, all of them before any that is not; and one of them.
  std::uint64_t kept() const { return opaque_->ready(); }
  link::Arrived kept(std::uint64_t chunk) const { return opaque_->arrived(chunk); }

  /// Has it room for more?
  bool has_room() { return works_.size() < most_works; }

  /// What has come: in memory of the host, where the buffer is the host's, or the device reaches
  /// it. It stays there until it is settled.
  void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements);

  /// A chunk will not come, for a reason that `status` tells.
  void skip(std::uint64_t chunk, Status status);

  /// Begins to copy all that was taken.
  void launch();

  /// How many of the chunks are not needed any more where they came.
  std::uint64_t settled();

  void drain();

  /// The first failure.
  Status status() const { return status_; }

 private:
  static constexpr std::size_t most_works = 8;

  struct Chunk {
    std::size_t bytes;
    bool is_elements;
  };
  /// What a device copies at once.
  struct Work {
    gpu::Event event;
    std::uint64_t end;  ///< all chunks before it are kept then
  };

  bool begin(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements);
  void give_up(Status status);
  void tell_failure();
  void note(std::uint64_t end);

  Runtime& runtime_;
  const std::shared_ptr<ReceivedBlock> opaque_;
  const int device_;
  const bool is_alone_;
  bool is_given_up_ = false;
  Status block_status_;            ///< that the block is to be told, once no device works at it
  std::uint64_t taken_ = 0;        ///< chunks
  std::uint64_t settled_ = 0;      ///< chunks
  std::vector<Chunk> chunks_;      ///< that were taken
  std::vector<gpu::Copy> copies_;  ///< to be launched
  std::deque<Work> works_;         ///< under way
  Status status_;
  QueueLease queue_;  ///< destroyed first: it uses what is above
};

}  // namespace mpress::engine
