// Threads whose stacks have a size that is drawn: task runtimes give theirs little.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "failure.hpp"
#include "random.hpp"

namespace stress {

class SizedThread {
 public:
  SizedThread(Random random, std::function<void()> work) : work_(std::move(work)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose frames are longer
    const std::size_t kilobytes[] = {least_kilobytes, 2 * least_kilobytes, 1024, 8192};
    pthread_attr_setstacksize(&attributes, kilobytes[random.below(4)] * 1024);
#else
    static_cast<void>(random);
#endif
    const auto run = [](void* thread) -> void* {
      static_cast<SizedThread*>(thread)->work_();
      return nullptr;
    };
    expect_equal(pthread_create(&thread_, &attributes, run, this), 0, "pthread_create");
    pthread_attr_destroy(&attributes);
  }
  SizedThread(const SizedThread&) = delete;
  SizedThread& operator=(const SizedThread&) = delete;
  ~SizedThread() { pthread_join(thread_, nullptr); }

 private:
  /// MPICH alone needs more than half of that, for nested types.
  static constexpr std::size_t least_kilobytes = 256;

  std::function<void()> work_;
  pthread_t thread_{};
};

}  // namespace stress
