// Which messages are cut into chunks, and what becomes of chunks that the program does not take.
//
// Only the header of such a message goes the program's way, so MPI matches it as it would match
// the message. The chunks follow by a link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/runtime.hpp"
#include "pipeline/receive_pipeline.hpp"
#include "policy/costs.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Messaging;

class Chunks {
 public:
  explicit Chunks(Messaging& messaging);
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;
  ~Chunks();

  /// What a rank that is opened so tells the others (Fact::least_chunk).
  static std::size_t least_chunk(std::size_t chunk_bytes,
                                 const policy::DeviceChunks& device_chunks);

  /// Opens the link over `channel`, which outlives it. Messages of two and more chunks of
  /// `chunk_bytes` will be cut, and those in device memory that go by the channel as
  /// `device_chunks` says; ranks may differ, and `least` is the least of what they announced. Where
  /// chunk_bytes is 0 on any rank, this is not called on any, and no message is cut.
  void open(link::Channel& channel, std::size_t least, std::size_t chunk_bytes,
            const policy::DeviceChunks& device_chunks);

  bool is_open() const { return chunk_bytes_ > 0; }
  std::size_t chunk_bytes() const { return chunk_bytes_; }

  /// Of messages in device memory that go by the channel to a rank.
  std::size_t device_chunk_bytes(policy::Peer peer) const {
    return device_chunks_[static_cast<std::size_t>(peer)];
  }

  /// The fewest that any rank cuts by.
  std::size_t least_chunk_bytes() const { return least_chunk_bytes_; }

  /// Is a message of `bytes` cut, where it is compressed?
  bool cuts(std::size_t bytes) const { return is_open() && bytes >= 2 * chunk_bytes_; }

  /// May one of up to `bytes` come that its sender has cut?
  bool may_come_cut(std::size_t bytes) const {
    return is_open() && bytes >= 2 * least_chunk_bytes_;
  }

  /// Receives and drops the chunks of a message that the program did not take.
  void drop(const wire::Header& header, int source);

  /// Whether nothing is under way.
  bool idle() const;

  /// Lets what is under way proceed, without waiting.
  void progress();

  /// The same with all other operations from now on: chunks that are under way may belong to none.
  void follow();

  /// Collective over MPI_COMM_WORLD: returns when all that was sent has been received, or dropped
  /// where its header never reached a receive of the program's. Where a rank of this host has ended
  /// without that, or nothing moves for long, it says so and returns false.
  bool close();

 private:
  class Slots;
  class Shutdown;
  class Follower;
  void progress_drops();

  Messaging& messaging_;
  std::size_t& chunk_bytes_;  ///< Runtime's
  std::unique_ptr<Slots> slots_;
  std::size_t least_chunk_bytes_ = 0;
  policy::DeviceChunks device_chunks_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<ReceivePipeline>> drops_;
  std::atomic<std::size_t> dropping_{0};
  std::atomic<bool> is_followed_{false};
};

}  // namespace mpress::engine
