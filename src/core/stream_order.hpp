// A call's place among what the program has given a device: behind what a stream of the program's
// holds, and before what that is given later (mpress_call); or behind the default streams.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/devices.hpp"
#include "gpu/queue.hpp"

namespace mpress::engine {

struct Runtime;

/// One thread at a time.
class StreamOrder {
 public:
  /// Behind what a stream of `device` holds now. Null where the device refuses, or the stream,
  /// which may be being captured into a graph.
  static std::shared_ptr<StreamOrder> behind(Runtime& runtime, void* stream, int device);

  /// Behind what the default streams hold now, of a call that names no stream and has a buffer of
  /// `device`. Null where that is nothing.
  static std::shared_ptr<StreamOrder> behind_defaults(Runtime& runtime, int device);

  StreamOrder(Runtime& runtime, int device, std::optional<void*> stream, Devices::Behind work)
      : runtime_(runtime), stream_(stream), device_(device), work_(std::move(work)) {}
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  /// Of a stream that the program names: what that is given later comes behind the call.
  bool has_stream() const { return stream_.has_value(); }

  /// May work of this device come behind it, and before what the stream is given later?
  bool suits(int device) const { return !stream_ || device_ == device; }

  /// Has the device done what the streams held? Then all that is given it now comes behind. Never
  /// waits. One that has failed says so to whoever gives it work, too.
  bool is_reached();

  /// Waits for that, and lets other operations proceed meanwhile. False where the device has
  /// failed.
  bool await();

  /// A queue of `device` whose work comes behind.
  QueueLease take_queue(int device) const;

  /// What the stream is given from now on comes behind what the queue has been given. False as for
  /// behind().
  bool precede(gpu::Queue& queue) const { return queue.signal(*stream_); }

 private:
  Runtime& runtime_;
  const std::optional<void*> stream_;
  const int device_;
  const Devices::Behind work_;
  gpu::State state_ = gpu::State::pending;
};

}  // namespace mpress::engine
