// A call's place in a stream of the program's (mpress_call): behind what the stream holds, and
// before what it is given later.
#pragma once

#include <memory>
#include <utility>

#include "engine/devices.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

class Job;

/// One thread at a time.
class StreamOrder {
 public:
  /// Behind what a stream of `device` holds now. Null where the device refuses, or the stream,
  /// which may be being captured into a graph.
  static std::shared_ptr<StreamOrder> behind(Job& job, void* stream, int device);

  StreamOrder(Job& job, void* stream, QueueLease queue)
      : job_(job), stream_(stream), device_(queue->device()), queue_(std::move(queue)) {}
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;
  /// Others get its queue: waits until nothing is in their way there.
  ~StreamOrder() { await(); }

  int device() const { return device_; }

  /// Has the device done what the stream held? Then all that is given it now comes behind. Never
  /// waits. One that has failed says so to whoever gives it work, too.
  bool is_reached();

  /// Waits for that, and lets other operations proceed meanwhile. False where the device has
  /// failed.
  bool await();

  /// A queue whose work comes behind; once, and in place of is_reached() and await().
  QueueLease take_queue() { return std::exchange(queue_, {}); }

  /// What the stream is given from now on comes behind what the queue has been given. False as for
  /// behind().
  bool precede(gpu::Queue& queue) const { return queue.signal(stream_); }

 private:
  Job& job_;
  void* const stream_;
  const int device_;
  QueueLease queue_;
  memory::Buffer word_;  ///< a copy of which is behind the stream
  gpu::Event event_ = 0;
  gpu::State state_ = gpu::State::pending;
};

}  // namespace mpress::engine
