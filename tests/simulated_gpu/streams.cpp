#include "streams.hpp"

#include <map>
#include <memory>
#include <mutex>

#include "simulated_gpu.h"

namespace mpress::simulated {
namespace {

struct Stream {
  explicit Stream(int device, bool is_blocking = false, bool is_default = false)
      : queue(device, gpu::Priority::usual, is_default), is_blocking(is_blocking) {}
  Queue queue;
  const bool is_blocking;  ///< waits for the default stream, and that for it
  bool capturing = false;
};

struct Streams {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Stream>> made;
  std::unique_ptr<Stream> defaults[devices];
};

Streams& streams() {
  static OfMembers<Streams> all;
  return all.own();
}

constexpr int none = -1;
thread_local int current = none;
thread_local Stream* thread_streams[devices];

Stream& find(void* stream) {
  std::lock_guard lock(streams().mutex);
  const auto found = streams().made.find(stream);
  if (found == streams().made.end()) fault("%p is no stream", stream);
  return *found->second;
}

/// Under the lock.
Queue& own_default(int device) {
  auto& own = streams().defaults[device];
  if (!own) own = std::make_unique<Stream>(device, false, true);
  return own->queue;
}

/// act(queue) for each blocking stream of the device, under the lock.
template <class Act>
void for_each_blocking(int device, const Act& act) {
  for (const auto& [handle, stream] : streams().made) {
    if (stream->is_blocking && stream->queue.device() == device) act(*stream);
  }
}

/// A stream of the program's that is given work now.
Queue& given(void* stream) {
  Stream& found = find(stream);
  if (found.capturing) fault("%p is being captured", stream);
  if (found.is_blocking) {
    std::lock_guard lock(streams().mutex);
    Queue& own = own_default(found.queue.device());
    if (!own.is_idle()) found.queue.follow(own);
  }
  return found.queue;
}

/// The answer of a device's default stream, which says that it has work also while a blocking one
/// has: but what is waited for is its own.
void add_default(int device, std::shared_ptr<Given>& work) {
  std::lock_guard lock(streams().mutex);
  bool is_busy = !own_default(device).is_idle();
  for_each_blocking(device, [&](Stream& stream) { is_busy |= !stream.queue.is_idle(); });
  if (!is_busy) return;
  if (!work) work = std::make_shared<Given>();
  own_default(device).add_to(*work);
  Stream* const own = thread_streams[device];
  if (own && !own->queue.is_idle()) own->queue.add_to(*work);
}

}  // namespace

Queue* stream_of(void* handle, int device) {
  if (!handle) return &default_stream(device);
  Stream& stream = find(handle);
  if (stream.queue.device() != device) fault("%p is a stream of another device", handle);
  return stream.capturing ? nullptr : &given(handle);
}

Queue& default_stream(int device) {
  if (current != none) device = current;
  std::lock_guard lock(streams().mutex);
  Queue& own = own_default(device);
  for_each_blocking(device, [&](Stream& stream) {
    if (stream.capturing) fault("the default stream is used while a blocking one is captured");
    if (!stream.queue.is_idle()) own.follow(stream.queue);
  });
  return own;
}

std::shared_ptr<const gpu::PriorWork> work_of(int device, void* stream) {
  if (is_failed(device)) return nullptr;
  Queue* const queue = stream_of(stream, device);
  if (!queue) return nullptr;
  auto work = std::make_shared<Given>();
  queue->add_to(*work);
  return work;
}

std::shared_ptr<const gpu::PriorWork> default_work(int device) {
  if (is_failed(device)) return nullptr;
  std::shared_ptr<Given> work;
  add_default(device, work);
  if (current != none && current != device) add_default(current, work);
  return work;
}

void finish_default_streams() {
  for (int device = 0; device < devices; ++device) {
    Stream* own = nullptr;
    {
      std::lock_guard lock(streams().mutex);
      own = streams().defaults[device].get();
    }
    if (own) own->queue.drain_for_program();
  }
}

}  // namespace mpress::simulated

using namespace mpress::simulated;

extern "C" {

void sim_set_device(int device) { current = device; }

static void* create(int device, bool is_blocking) {
  auto made = std::make_unique<Stream>(device, is_blocking);
  void* const handle = made.get();
  std::lock_guard lock(streams().mutex);
  streams().made.emplace(handle, std::move(made));
  return handle;
}

void* sim_stream_create(int device) { return create(device, false); }
void* sim_stream_create_blocking(int device) { return create(device, true); }

void* sim_thread_stream(int device) {
  Stream*& own = thread_streams[device];
  if (!own) own = static_cast<Stream*>(create(device, true));
  return own;
}

void sim_stream_destroy(void* stream) {
  find(stream).queue.drain_for_program();
  std::lock_guard lock(streams().mutex);
  streams().made.erase(stream);
}

void sim_stream_copy(void* stream, void* to, const void* from, size_t bytes) {
  given(stream).copy_for_program(to, from, bytes);
}

void sim_stream_synchronize(void* stream) { find(stream).queue.drain_for_program(); }

void sim_stream_wait(void* stream, const int* flag) { given(stream).wait_for_program(flag); }

void sim_stream_capture(void* stream, int capturing) { find(stream).capturing = capturing != 0; }

}  // extern "C"
