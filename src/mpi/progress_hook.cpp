#include "mpi/progress_hook.hpp"

#include <sched.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "core/hook_rules.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {
namespace {

std::atomic<bool (*)()> own_poll{nullptr};
std::atomic<bool> is_called{false};  ///< MPI calls the hook, or is about to
std::atomic<bool> is_removed{false};
std::atomic<int> inside{0};  ///< threads in the hook

class Inside {
 public:
  Inside() {
    engine::keeps_hook_rules = true;
    inside.fetch_add(1);  // before the look at is_removed, as remove_progress_hook() does both
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    inside.fetch_sub(1);
    engine::keeps_hook_rules = false;
  }
};

/// Runs poll() once. Returns whether MPI shall go on calling it. Not every MPI has hooks.
[[maybe_unused]] bool run() {
  if (engine::keeps_hook_rules) return true;
  const Inside here;
  const auto poll = own_poll.load();
  bool goes_on = false;
  if (!is_removed.load()) {
    goes_on = poll();
    // Who starts something now either finds is_called false, and adds the hook, or had started it
    // before this poll().
    if (!goes_on) {
      is_called.store(false);
      goes_on = poll() && !is_called.exchange(true);
    }
  }
  return goes_on;
}

#if defined(OPEN_MPI)

using Callback = int (*)();
std::mutex registering;

template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(find_symbol(name));
}

auto register_call() {
  static const auto call = find<int(Callback)>("opal_progress_register");
  return call;
}

auto unregister_call() {
  static const auto call = find<int(Callback)>("opal_progress_unregister");
  return call;
}

/// Several threads may be here. To register what is registered does nothing.
int called() {
  const bool goes_on = run();
  if (goes_on && is_called.load()) return 0;
  std::lock_guard lock(registering);
  if (goes_on) is_called.store(true);  // another thread found nothing, a moment too early
  if (is_called.load() && !is_removed.load()) {
    register_call()(called);
  } else {
    unregister_call()(called);
  }
  return 0;
}

bool start() {
  std::lock_guard lock(registering);
  return register_call()(called) == 0;
}

bool is_there() { return register_call() && unregister_call(); }

#elif defined(MPICH_VERSION)

struct Thing;
using Poll = int(Thing*);
constexpr int any_stream = 0x3c000000;  // MPIX_STREAM_NULL

auto start_call() {
  static const auto call =
      reinterpret_cast<int (*)(Poll*, void*, int)>(find_symbol("PMPIX_Async_start"));
  return call;
}

int called(Thing*) {
  constexpr int no_progress = 0;
  constexpr int done = 1;
  return run() ? no_progress : done;
}

bool start() { return start_call()(called, nullptr, any_stream) == MPI_SUCCESS; }

bool is_there() { return start_call() != nullptr; }

#else

bool start() { return false; }
bool is_there() { return false; }

#endif

}  // namespace

bool has_progress_hook() { return is_there(); }

bool add_progress_hook(bool (*poll)()) {
  if (engine::keeps_hook_rules) return true;  // run() asks again
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (is_called.load()) return true;
  if (is_removed.load() || !is_there()) return false;
  own_poll.store(poll);
  if (is_called.exchange(true) || start()) return true;
  is_called.store(false);
  return false;
}

bool in_progress_hook() { return engine::keeps_hook_rules; }

HookRules::HookRules() : held_before_(std::exchange(engine::keeps_hook_rules, true)) {}
HookRules::~HookRules() { engine::keeps_hook_rules = held_before_; }

void remove_progress_hook() {
  is_removed.store(true);
  // MPICH ends its entry at the next look; Open MPI's is taken away now.
#if defined(OPEN_MPI)
  if (is_there()) {
    std::lock_guard lock(registering);
    unregister_call()(called);
  }
#endif
  while (inside.load() > 0) ::sched_yield();
}

}  // namespace mpress::mpi
