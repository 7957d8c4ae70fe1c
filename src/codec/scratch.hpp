// Memory for the duration of a call. Units do not fit on the stacks of task runtimes and user-level
// threads; thread-local memory would come out of the same stacks, and does not follow a user-level
// thread from one thread of the system to another.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace mpress::codec {

/// A block leased from a pool of the process. Never fails: where memory is out, or all blocks are
/// leased, the caller waits for another's. MPI, handlers and operators must not run meanwhile.
/// Costs two uncontended atomic operations. Thread-safe.
class Scratch {
 public:
  static constexpr std::size_t bytes = 64 << 10;

  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Aligned to 64 bytes, of unspecified contents.
  void* data() const { return block_; }

  /// The block as a T, which is as uninitialised as one on the stack would be.
  template <class T>
  T& as() const {
    static_assert(sizeof(T) <= bytes && alignof(T) <= 64 && std::is_trivially_destructible_v<T>);
    ::new (block_) T;
    return *static_cast<T*>(block_);
  }

 private:
  void* block_;
  unsigned slot_;
};

}  // namespace mpress::codec
