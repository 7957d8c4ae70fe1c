// What mpress knows about an MPI object, found by its handle. Handles are recycled, so whoever
// fills the cache also sees to it that the object's end erases the entry.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "core/changes.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// Thread-safe. One instance a program for each pair of types: the last entry that a thread
/// found is kept in thread-local storage, so that a repeated look-up takes no lock.
template <typename Handle, typename Value>
class HandleCache {
 public:
  /// The entry of `handle`; `make()` gives a std::shared_ptr<Value> for a new one, or null.
  template <typename Make>
  std::shared_ptr<Value> find(Handle handle, Make&& make) {
    const std::uintptr_t bits = handle_bits(handle);
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    if (recent_.is(bits, generation)) return owner_.value;
    std::shared_ptr<Value> value = look_up(bits);
    if (!value) value = look_up_or_make(bits, std::forward<Make>(make));
    if (recent_.has_thread_ended) return value;  // a call from an exit handler
    const std::shared_ptr<Value> before = std::exchange(owner_.value, value);
    recent_ = {bits, generation, value.get(), false};
    return value;
  }

  /// The same for a quick look: as a rule it owns nothing, and the entry lives until this thread's
  /// next look-up, so until the next call of MPI's. Owning costs two locked operations.
  template <typename Make>
  std::shared_ptr<Value> borrow(Handle handle, Make&& make) {
    const Recent& recent = recent_;
    if (recent.is(handle_bits(handle), generation_.load(std::memory_order_acquire))) {
      return std::shared_ptr<Value>(std::shared_ptr<Value>(), recent.value);
    }
    return find(handle, std::forward<Make>(make));
  }

  void erase(Handle handle) {
    std::shared_ptr<Value> ended;  // outlives the lock, since its end may call MPI
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(handle_bits(handle));
    if (found == entries_.end()) return;
    ended = std::move(found->second);
    entries_.erase(found);
    generation_.fetch_add(1, std::memory_order_release);
    engine::note_change();
  }

  /// Erases all entries; those that other threads found last live on until these look again.
  void clear() {
    std::unordered_map<std::uintptr_t, std::shared_ptr<Value>> ended;
    {
      std::unique_lock lock(mutex_);
      ended.swap(entries_);
      generation_.fetch_add(1, std::memory_order_release);
      engine::note_change();
    }
    if (recent_.has_thread_ended) return;
    recent_.value = nullptr;
    owner_.value.reset();
  }

 private:
  /// Without constructor and destructor: reading it costs no look whether it has been made.
  struct Recent {
    std::uintptr_t bits;
    std::uint64_t generation;
    Value* value;  ///< null: none
    bool has_thread_ended;

    bool is(std::uintptr_t other, std::uint64_t now) const {
      return value && bits == other && generation == now;
    }
  };
  /// Keeps what `recent_` names.
  struct Owner {
    std::shared_ptr<Value> value;
    ~Owner() {
      recent_.value = nullptr;
      recent_.has_thread_ended = true;
    }
  };

  std::shared_ptr<Value> look_up(std::uintptr_t bits) {
    std::shared_lock lock(mutex_);
    const auto found = entries_.find(bits);
    return found == entries_.end() ? nullptr : found->second;
  }

  /// One thread at a time makes entries, so that each is made once; making may call erase().
  template <typename Make>
  std::shared_ptr<Value> look_up_or_make(std::uintptr_t bits, Make&& make) {
    std::lock_guard making(making_);
    if (std::shared_ptr<Value> value = look_up(bits)) return value;
    std::shared_ptr<Value> value = make();
    if (value) {
      std::unique_lock lock(mutex_);
      entries_[bits] = value;
    }
    return value;
  }

  std::mutex making_;
  std::shared_mutex mutex_;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Value>> entries_;
  std::atomic<std::uint64_t> generation_{0};
  static inline constinit thread_local Recent recent_{};
  static inline thread_local Owner owner_;
};

}  // namespace mpress::mpi
