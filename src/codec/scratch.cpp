#include "codec/scratch.hpp"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace mpress::codec {
namespace {

struct alignas(64) Slot {
  std::atomic<bool> is_leased{false};
  void* block = nullptr;
};

/// So many calls run at a time; others wait.
constexpr unsigned number_of_slots = 64;

/// The first slot's, so that one call can always run. Takes no memory until it is used.
alignas(64) constinit unsigned char reserved[Scratch::bytes] = {};
constinit Slot slots[number_of_slots] = {{.block = reserved}};

/// A child has none of the threads that held a lease when its parent forked.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  for (Slot& slot : slots) slot.is_leased.store(false, std::memory_order_relaxed);
});

bool lease(Slot& slot) {
  if (slot.is_leased.exchange(true, std::memory_order_acquire)) return false;
  if (slot.block) return true;
  // Not the heap: what it has could be in the middle of the program's own allocator.
  const int error = errno;
  void* const block =
      mmap(nullptr, Scratch::bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block != MAP_FAILED) {
    slot.block = block;
    return true;
  }
  errno = error;
  slot.is_leased.store(false, std::memory_order_release);
  return false;
}

/// Where a thread looks first: mostly at a slot that only it uses, whose block is in its cache.
unsigned first_slot() {
  const auto thread = static_cast<std::uint64_t>(pthread_self());
  return static_cast<unsigned>((thread >> 6) * 0x9E3779B97F4A7C15u >> 58);
}
static_assert(number_of_slots == 1u << (64 - 58));

void wait(unsigned turn) {
  if (turn < 64) {
    sched_yield();
    return;
  }
  const int error = errno;
  const timespec a_while{0, 50000};
  nanosleep(&a_while, nullptr);
  errno = error;
}

}  // namespace

Scratch::Scratch() {
  const unsigned first = first_slot();
  for (unsigned turn = 0;; ++turn) {
    for (unsigned i = 0; i < number_of_slots; ++i) {
      slot_ = (first + i) % number_of_slots;
      if (!lease(slots[slot_])) continue;
      block_ = slots[slot_].block;
      return;
    }
    wait(turn);
  }
}

Scratch::~Scratch() { slots[slot_].is_leased.store(false, std::memory_order_release); }

}  // namespace mpress::codec
