// One thread at a time does something; others go on without, as they may not wait.
#pragma once

#include <atomic>

namespace mpress::engine {

class OneAtATime {
 public:
  /// `taken`: set while a thread is at it.
  explicit OneAtATime(std::atomic<bool>& taken)
      : taken_(taken), is_ours_(!taken.exchange(true, std::memory_order_acquire)) {}
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;
  ~OneAtATime() {
    if (is_ours_) taken_.store(false, std::memory_order_release);
  }

  explicit operator bool() const { return is_ours_; }

 private:
  std::atomic<bool>& taken_;
  const bool is_ours_;
};

}  // namespace mpress::engine
