// What devices encode for several messages, in as few launches as possible: a launch takes as long
// as a short block does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/range_of.hpp"
#include "codec/spec.hpp"
#include "core/devices.hpp"
#include "gpu/codec_queue.hpp"

namespace mpress::engine {

struct Runtime;

/// Pieces that one queue encodes by one codec, of one message or of several, whose encoders share
/// this. One thread at a time, as the queue is one thread's: they are advanced together.
class Launch {
 public:
  /// A relative bound is of the range that `range` names, of RangeOf::call that of all pieces,
  /// which are at most CodecQueue::most_pieces then.
  Launch(QueueLease queue, const Spec& spec, ElementType type, codec::RangeOf range)
      : queue_(std::move(queue)), spec_(spec), type_(type), range_(range) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Adds the pieces of a message, before launch(). Returns the number of the first; those of the
  /// others follow.
  std::size_t add(std::span<const gpu::Piece> pieces);

  /// Gives the queue all pieces: the first of each message, then the second of each, and so on. So
  /// readers, who may wait for the same piece of several ranks, need not wait for whole messages.
  /// What a device refuses at once is a failure of all that query() tells of.
  void launch();

  /// What has become of a piece: pending until it is launched; else as Queue::query().
  gpu::State query(std::size_t piece, gpu::Outcome* outcome);

  /// These pieces are not wanted any more. Once it returns, nothing reads their elements or writes
  /// their payloads: what was not launched never will be, and what was has ended.
  void withdraw(std::size_t first, std::size_t count);

  /// Waits until all that was launched is done, or has failed.
  void drain() { queue_->drain(); }

  /// Idle but for the pieces: what it is given besides comes behind all of them.
  gpu::Queue& queue() { return *queue_; }

  std::size_t pieces() const { return pieces_.size(); }
  bool is_for(int device, const Spec& spec, ElementType type) const {
    return queue_->device() == device && spec_ == spec && type_ == type;
  }
  std::uint64_t launched_ns() const { return launched_ns_; }

 private:
  struct Given {
    gpu::Piece piece;
    bool is_withdrawn = false;
    gpu::Event event = 0;  ///< once it is launched
  };

  struct Turn {
    std::size_t chunk;  ///< of its message
    std::size_t piece;
  };

  const QueueLease queue_;
  const Spec spec_;
  const ElementType type_;
  const codec::RangeOf range_;
  std::vector<Given> pieces_;
  std::vector<Turn> order_;
  bool is_launched_ = false;
  std::uint64_t launched_ns_ = 0;
};

/// Collects what encoders give while messages are prepared, and launches it: one launch for each
/// device, spec and element type, or more where those have more pieces than a launch takes. What
/// an encoder makes is not to be waited for before launch() was called. One thread at a time.
class LaunchBatch {
 public:
  explicit LaunchBatch(Runtime& runtime) : runtime_(runtime) {}
  LaunchBatch(const LaunchBatch&) = delete;
  LaunchBatch& operator=(const LaunchBatch&) = delete;
  ~LaunchBatch() { launch(); }

  /// Adds pieces of a region, a message's, of which each is in no other's way: a relative bound is
  /// of the range of each by itself. Sets `first` to the number of the first in the launch that it
  /// returns. Null where the device has no queue.
  std::shared_ptr<Launch> add(const Region& region, const Spec& spec, ElementType type,
                              std::span<const gpu::Piece> pieces, std::size_t& first);

  /// How often add() gave a launch: what has been added since an earlier look waits for launch().
  std::size_t added() const { return added_; }

  /// Launches all that was added since the last call.
  void launch();

 private:
  Runtime& runtime_;
  std::vector<std::shared_ptr<Launch>> launches_;  ///< not launched yet
  std::size_t added_ = 0;
};

}  // namespace mpress::engine
