#include "streams.hpp"

#include <map>
#include <memory>
#include <mutex>

#include "simulated_gpu.h"

namespace mpress::simulated {
namespace {

struct Stream {
  explicit Stream(int device) : queue(device, gpu::Priority::usual) {}
  Queue queue;
  bool capturing = false;
};

struct Streams {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Stream>> made;
  std::unique_ptr<Stream> defaults[devices];
};

Streams& streams() {
  static auto* const immortal = new Streams;
  return *immortal;
}

Stream& find(void* stream) {
  std::lock_guard lock(streams().mutex);
  const auto found = streams().made.find(stream);
  if (found == streams().made.end()) fault("%p is no stream", stream);
  return *found->second;
}

}  // namespace

Queue* stream_of(void* handle, int device) {
  if (!handle) {
    std::lock_guard lock(streams().mutex);
    auto& own = streams().defaults[device];
    if (!own) own = std::make_unique<Stream>(device);
    return &own->queue;
  }
  Stream& stream = find(handle);
  if (stream.queue.device() != device) fault("%p is a stream of another device", handle);
  return stream.capturing ? nullptr : &stream.queue;
}

void finish_default_stream(int device) {
  Stream* own = nullptr;
  {
    std::lock_guard lock(streams().mutex);
    own = streams().defaults[device].get();
  }
  if (own) own->queue.drain_for_program();
}

}  // namespace mpress::simulated

using namespace mpress::simulated;

extern "C" {

void* sim_stream_create(int device) {
  auto made = std::make_unique<Stream>(device);
  void* const handle = made.get();
  std::lock_guard lock(streams().mutex);
  streams().made.emplace(handle, std::move(made));
  return handle;
}

void sim_stream_destroy(void* stream) {
  find(stream).queue.drain_for_program();
  std::lock_guard lock(streams().mutex);
  streams().made.erase(stream);
}

void sim_stream_copy(void* stream, void* to, const void* from, size_t bytes) {
  find(stream).queue.copy_for_program(to, from, bytes);
}

void sim_stream_synchronize(void* stream) { find(stream).queue.drain_for_program(); }

void sim_stream_wait(void* stream, const int* flag) { find(stream).queue.wait_for_program(flag); }

void sim_stream_capture(void* stream, int capturing) { find(stream).capturing = capturing != 0; }

}  // extern "C"
