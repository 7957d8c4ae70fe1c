// Opaque bytes between the members of a group, both ends of which are mpress's own.
//
// The binding implements it by a private communicator of MPI's (mpi/mpi_channel.hpp). Tests
// implement it by memory of one process whose threads are the members (tests/loopback).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gpu/queue.hpp"

namespace mpress::link {

/// Between two members, messages under one tag arrive in the order in which they were sent. No call
/// waits for another member, but for take(). Thread-safe. A send or a receive that the channel
/// cannot start ends the job: its other end would wait for ever.
class Channel {
 public:
  /// A send, a receive or a combination under way. The caller polls it until it is over.
  struct Pending {
    std::uintptr_t handle;
  };

  virtual int size() const = 0;

  /// Tags lie from 0 to this, not included.
  virtual std::uint64_t tags() const = 0;

  /// Sends `bytes` bytes to member `to`, which stay as they are until that is over. It may be over
  /// before member `to` receives them, or not.
  virtual Pending send(const std::byte* data, std::size_t bytes, int to, int tag) = 0;

  /// Receives at most `bytes` bytes from member `from`.
  virtual Pending receive(std::byte* place, std::size_t bytes, int from, int tag) = 0;

  /// Looks whether `one` is over. Done: it is, and `received` has the bytes of a receive. Failed:
  /// it is, and more bytes came than there was room for, or a member is gone.
  virtual gpu::State poll(Pending& one, std::size_t* received = nullptr) = 0;

  static constexpr int any_tag = -1;

  /// A message that has come, and that no receive was started for.
  struct Found {
    int from;
    std::size_t bytes;
    std::uintptr_t handle;
  };

  /// Takes such a message, under `tag`, out of the channel's queue; nothing where none has come, or
  /// where this thread may not look. take() has to follow.
  virtual std::optional<Found> find(int tag) = 0;

  /// Receives it; what is longer than `room` bytes is lost. May wait for its sender.
  virtual void take(const Found& found, std::byte* place, std::size_t room) = 0;

  // All members start these in the same order.

  /// Adds up, over all members, the number that each has for this one in `for_each`, which has one
  /// for each member. Both arguments stay until that is over.
  virtual Pending add_up(std::span<const std::uint64_t> for_each, std::uint64_t* own) = 0;

  /// Makes each of `numbers` the greatest that any member has in its place. They stay until that is
  /// over, and are as many on all members.
  virtual Pending greatest(std::span<std::uint64_t> numbers) = 0;

  /// Is over once all members have started it.
  virtual Pending barrier() = 0;

 protected:
  ~Channel() = default;
};

}  // namespace mpress::link
