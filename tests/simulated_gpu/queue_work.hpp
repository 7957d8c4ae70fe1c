// What the parts of a simulated queue share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory.hpp"
#include "queue.hpp"

namespace mpress::simulated {

inline constexpr int rubbish = 0xee;

/// A queue is for one thread at a time, of the member that has opened it.
class Call {
 public:
  explicit Call(Calls& calls) : calls_(calls) {
    if (own_member() != calls.member) fault("a queue of another member is used");
    if (calls_.is_under_way.exchange(true)) fault("two threads use a queue at once");
  }
  ~Call() { calls_.is_under_way = false; }

 private:
  Calls& calls_;
};

inline Access reads(const void* memory, std::size_t bytes) {
  return {static_cast<const std::byte*>(memory), bytes, false};
}
inline Access writes(const void* memory, std::size_t bytes) {
  return {static_cast<const std::byte*>(memory), bytes, true};
}

/// Host memory that devices reach.
inline void check_reached(const void* memory, std::size_t bytes) {
  if (Memory::instance().is_pinned(memory, bytes)) return;
  fault("%p is no memory of the host's that devices reach", memory);
}

inline void check_flag(const std::uint32_t* flag) {
  if (!Memory::instance().is_mapped(flag, sizeof *flag))
    fault("a flag lies in memory that is not mapped");
}

}  // namespace mpress::simulated
