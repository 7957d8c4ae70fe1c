// Streams of the program's on device 0, and its default one: those of CUDA's driver, which the test
// does not link, or of the simulated GPUs.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "check.hpp"

namespace mpress {

class ProgramStream {
 public:
  /// Of the library for GPUs at `path`, which is loaded. `is_blocking`: the default stream and this
  /// one wait for each other.
  explicit ProgramStream(const char* path, bool is_blocking = false) {
    library_ = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (const auto create = find<void* (*)(int)>(is_blocking ? "sim_stream_create_blocking"
                                                             : "sim_stream_create")) {
      handle_ = create(0);
      return;
    }
    is_simulated_ = false;
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library_);
    void* context = nullptr;
    CHECK(find<int (*)(unsigned)>("cuInit")(0) == 0);
    CHECK(find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0) == 0);
    CHECK(find<int (*)(void*)>("cuCtxSetCurrent")(context) == 0);
    const unsigned flags = is_blocking ? 0 : 1;
    CHECK(find<int (*)(void**, unsigned)>("cuStreamCreate")(&handle_, flags) == 0);
  }
  ProgramStream(const ProgramStream&) = delete;
  ~ProgramStream() {
    if (is_simulated_) {
      find<void (*)(void*)>("sim_stream_destroy")(handle_);
    } else {
      CHECK(find<int (*)(void*)>("cuStreamDestroy_v2")(handle_) == 0);
    }
  }

  void* handle() const { return handle_; }

  void copy(void* to, const void* from, std::size_t bytes) {
    if (is_simulated_) {
      find<void (*)(void*, void*, const void*, std::size_t)>("sim_stream_copy")(handle_, to, from,
                                                                                bytes);
    } else {
      const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
      CHECK(find<int (*)(std::uintptr_t, std::uintptr_t, std::size_t, void*)>("cuMemcpyAsync")(
                address(to), address(from), bytes, handle_) == 0);
    }
  }

  void synchronize() {
    if (is_simulated_) {
      find<void (*)(void*)>("sim_stream_synchronize")(handle_);
    } else {
      CHECK(find<int (*)(void*)>("cuStreamSynchronize")(handle_) == 0);
    }
  }

  /// What it is given later waits until `*flag`, in pinned memory, is not 0.
  void hold(int* flag) {
    if (is_simulated_) {
      find<void (*)(void*, const int*)>("sim_stream_wait")(handle_, flag);
    } else {
      constexpr unsigned greater_or_equal = 0;
      CHECK(find<int (*)(void*, std::uintptr_t, std::uint32_t, unsigned)>("cuStreamWaitValue32_v2")(
                handle_, reinterpret_cast<std::uintptr_t>(flag), 1, greater_or_equal) == 0);
    }
  }

  /// On the default stream: sets memory of the device.
  void set_by_default(void* memory, unsigned char byte, std::size_t bytes) {
    if (is_simulated_) {
      find<void (*)(void*, int, std::size_t)>("sim_set")(memory, byte, bytes);
    } else {
      CHECK(find<int (*)(std::uintptr_t, unsigned char, std::size_t)>("cuMemsetD8_v2")(
                reinterpret_cast<std::uintptr_t>(memory), byte, bytes) == 0);
    }
  }

  void begin_capture() {
    if (is_simulated_) {
      find<void (*)(void*, int)>("sim_stream_capture")(handle_, 1);
    } else {
      constexpr int global = 0;
      CHECK(find<int (*)(void*, int)>("cuStreamBeginCapture_v2")(handle_, global) == 0);
    }
  }

  /// Which nothing has spoilt.
  void end_capture() {
    if (is_simulated_) {
      find<void (*)(void*, int)>("sim_stream_capture")(handle_, 0);
    } else {
      void* graph = nullptr;
      CHECK(find<int (*)(void*, void**)>("cuStreamEndCapture")(handle_, &graph) == 0);
      CHECK(find<int (*)(void*)>("cuGraphDestroy")(graph) == 0);
    }
  }

 private:
  template <class Function>
  Function find(const char* name) const {
    return library_ ? reinterpret_cast<Function>(::dlsym(library_, name)) : nullptr;
  }

  void* library_ = nullptr;
  void* handle_ = nullptr;
  bool is_simulated_ = true;
};

}  // namespace mpress
