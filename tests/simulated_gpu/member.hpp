// Members of a process, each of which stands for a process: it has devices, memory, streams and
// queues of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace mpress::simulated {

inline constexpr int most_members = 64;

/// The one that this thread works for; 0 until the thread says otherwise.
int own_member();
void be_member(int member);

/// The highest that any thread has been.
int last_member();

/// A T of each member's, made when the member first uses it and never destroyed. Thread-safe.
template <class T>
class OfMembers {
 public:
  T& own() {
    std::atomic<T*>& one = all_[static_cast<std::size_t>(own_member())];
    if (T* const made = one.load(std::memory_order_acquire)) return *made;
    std::lock_guard lock(mutex_);
    if (!one.load(std::memory_order_relaxed)) one.store(new T, std::memory_order_release);
    return *one.load(std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;
  std::array<std::atomic<T*>, most_members> all_{};
};

}  // namespace mpress::simulated
