// Receives in flight into memory of the program's, where a frame or a header may come.
//
// MPI lets no two receives share a buffer, but every MPI tolerates it, and benchmarks post windows
// of receives into one. A frame in such a buffer would be overwritten before anybody looks at it.
// So a receive that overlaps one in flight goes to staging.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mpress::engine {

/// One of them, as those that overlap it see it, from any thread.
class InPlaceReceive {
 public:
  /// Another receive overlaps it: a frame is copied elsewhere as soon as anybody looks. Returns
  /// whether the receive looks itself from now on, whenever operations advance.
  virtual bool contest() = 0;

  /// Where it does: has anything come that it has not looked at, or that is not yet decoded?
  virtual bool is_filling() const = 0;

 protected:
  ~InPlaceReceive() = default;
};

/// Thread-safe. Intervals that are in it never overlap.
class InPlaceReceives {
 public:
  /// Notes a receive into `bytes` bytes at `begin`. False, and it is not noted, where it overlaps
  /// one that is.
  bool add(std::uintptr_t begin, std::size_t bytes, std::weak_ptr<InPlaceReceive> receive);

  /// Forgets the one that begins there.
  void remove(std::uintptr_t begin);

  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }

  /// Those that overlap `bytes` bytes at `begin`.
  std::vector<std::shared_ptr<InPlaceReceive>> overlapping(std::uintptr_t begin, std::size_t bytes);

 private:
  struct Interval {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::weak_ptr<InPlaceReceive> receive;
  };
  std::vector<Interval>::iterator first_behind(std::uintptr_t begin);

  std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
  std::vector<Interval> intervals_;  ///< by address
  std::atomic<std::size_t> size_{0};
};

}  // namespace mpress::engine
