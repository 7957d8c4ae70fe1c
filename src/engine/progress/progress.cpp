#include "engine/progress/progress.hpp"

#include <algorithm>
#include <utility>

namespace mpress::engine {
namespace {

/// Set while this thread advances operations: what they call starts no second round.
thread_local bool advancing = false;

}  // namespace

bool Progress::is_advancing() { return advancing; }

std::shared_ptr<Operation> Progress::pop() {
  std::lock_guard lock(mutex_);
  if (operations_.empty()) return nullptr;
  std::shared_ptr<Operation> operation = std::move(operations_.front());
  operations_.pop_front();
  ++advanced_now_;
  return operation;
}

void Progress::push_back(std::shared_ptr<Operation> operation, bool is_over) {
  std::lock_guard lock(mutex_);
  --advanced_now_;
  if (!is_over) operations_.push_back(std::move(operation));
}

void Progress::add(std::shared_ptr<Operation> operation) {
  {
    std::lock_guard lock(mutex_);
    in_hook_.fetch_add(operation->may_run_in_hook() ? 1 : 0, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
    operations_.push_back(std::move(operation));
  }
  if (is_threaded()) wake();
}

void Progress::end(Operation& operation) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  in_hook_.fetch_sub(operation.may_run_in_hook() ? 1 : 0, std::memory_order_relaxed);
  operation.over_.store(true, std::memory_order_release);
}

bool Progress::advance(std::size_t most) {
  if (idle() || std::exchange(advancing, true)) return false;
  bool ended = false;
  for (most = std::min(most, count_.load(std::memory_order_relaxed)); most > 0; --most) {
    std::shared_ptr<Operation> operation = pop();
    if (!operation) break;
    const bool is_over = operation->advance();
    if (is_over) {
      ended = true;
      end(*operation);
    }
    push_back(is_over ? nullptr : operation, is_over);
    if (!is_over) continue;
    advancing = false;
    operation->ended();
    if (std::exchange(advancing, true)) return true;
  }
  advancing = false;
  return ended;
}

bool Progress::advance_in_hook(std::size_t most) {
  if (idle()) return false;
  if (std::exchange(advancing, true)) return true;
  for (std::size_t count = count_.load(std::memory_order_relaxed);
       count > 0 && most > 0 && may_run_in_hook(); --count) {
    std::shared_ptr<Operation> operation = pop();
    if (!operation) break;
    bool is_over = false;
    if (operation->may_run_in_hook()) {
      --most;
      is_over = operation->advance();
    }
    if (is_over) end(*operation);
    push_back(is_over ? nullptr : operation, is_over);
    if (is_over) operation->ended();
  }
  advancing = false;
  return may_run_in_hook();
}

void Progress::flush() {
  if (idle() || advancing) return;
  wait_until([this] {
    std::lock_guard lock(mutex_);
    return advanced_now_ == 0 &&
           std::none_of(operations_.begin(), operations_.end(),
                        [](const auto& operation) { return operation->needs_host(); });
  });
}

}  // namespace mpress::engine
