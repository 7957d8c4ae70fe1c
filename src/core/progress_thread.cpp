#include "core/progress_thread.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <system_error>

#include "core/progress.hpp"
#include "trace/record.hpp"

namespace mpress::engine {
namespace {

/// A round that takes longer has moved something.
constexpr std::uint64_t fruitless_ns = 5'000;

/// How long it looks again and again when nothing moves, before it gives the processor away in
/// between.
constexpr std::uint64_t watchful_ns = 200'000;

constexpr long nap_ns = 50'000;

}  // namespace

bool ProgressThread::start() {
  // Signals are the program's threads' business.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  process_ = ::getpid();
  try {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "mpress");
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  progress_.set_threaded(thread_.joinable());
  return thread_.joinable();
}

void ProgressThread::stop() {
  if (!thread_.joinable() || ::getpid() != process_) return;
  stops_.store(true, std::memory_order_release);
  progress_.set_threaded(false);
  progress_.wake();
  thread_.join();
}

void ProgressThread::run() {
  std::uint64_t moved_ns = trace::now_ns();
  while (!stops_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = progress_.changes();
    if (progress_.idle()) {
      if (!stops_.load(std::memory_order_acquire)) progress_.sleep(seen);
      moved_ns = trace::now_ns();
      continue;
    }
    const std::uint64_t begin = trace::now_ns();
    const bool ended = progress_.advance();
    const std::uint64_t end = trace::now_ns();
    if (ended || end - begin > fruitless_ns) moved_ns = end;
    if (end - moved_ns > watchful_ns) {
      const timespec nap{0, nap_ns};
      ::nanosleep(&nap, nullptr);
    }
  }
}

}  // namespace mpress::engine
