// Where the chunks of large messages travel: a duplicate of MPI_COMM_WORLD of mpress's own.
//
// Only the header of such a message goes the program's way, so MPI matches it as it would match
// the message. The chunks follow between the two processes under a tag that the header names, in
// order. No send waits for a chunk to be received.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/p2p/chunk_receive.hpp"
#include "engine/p2p/outbox.hpp"
#include "mpi/calls.hpp"
#include "policy/costs.hpp"

namespace mpress::engine {

class Job;

class ChunkLink {
 public:
  /// Collective over MPI_COMM_WORLD. Messages of two and more chunks of `chunk_bytes` will be cut,
  /// and those in device memory that go by MPI as `device_chunks` says; ranks may differ. Where
  /// `chunk_bytes` is 0 on any rank, the link stays closed on all, and no message is cut.
  void open(std::size_t chunk_bytes, const policy::DeviceChunks& device_chunks);

  bool is_open() const { return chunk_bytes_ > 0; }
  MPI_Comm comm() const { return comm_; }
  std::size_t chunk_bytes() const { return chunk_bytes_; }

  /// Of messages in device memory that go by MPI to a rank.
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

  std::uint64_t next_message() { return next_message_.fetch_add(1, std::memory_order_relaxed); }
  int tag_of(std::uint64_t message) const { return static_cast<int>(message % tags_); }

  /// Counts a chunk that has come.
  void received() { received_.fetch_add(1, std::memory_order_relaxed); }

  /// Has any come?
  bool is_used() const { return received_.load(std::memory_order_relaxed) > 0; }

  /// The header of this message was cancelled: its chunks will not be asked for.
  void cancel(Job& job, std::uint64_t message);

  /// Receives and drops the chunks of a message that the program did not take.
  void drop(Job& job, const wire::Header& header, int source);

  /// Whether nothing is under way.
  bool idle() const { return outbox.empty() && dropping_.load(std::memory_order_relaxed) == 0; }

  /// Lets what is under way proceed, without waiting.
  void progress(Job& job);

  /// Collective over MPI_COMM_WORLD: returns when all that was sent has been received, or dropped
  /// where its header never reached a receive of the program's. Where a rank of this host has ended
  /// without that, or nothing moves for long, it says so and returns all the same.
  void close(Job& job);

  Outbox outbox;

 private:
  void progress_drops(Job& job);
  bool drop_unclaimed(Job& job);
  void progress_at_end(Job& job);
  bool say_farewell(Job& job);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::size_t chunk_bytes_ = 0;
  std::size_t least_chunk_bytes_ = 0;
  policy::DeviceChunks device_chunks_{};
  std::uint64_t tags_ = 1;
  std::atomic<std::uint64_t> next_message_{0};
  std::atomic<std::uint64_t> received_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<ChunkReceive>> drops_;
  std::atomic<std::size_t> dropping_{0};
};

}  // namespace mpress::engine
