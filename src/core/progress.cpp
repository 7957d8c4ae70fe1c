#include "core/progress.hpp"

#include <algorithm>
#include <utility>

namespace mpress::engine {
namespace {

/// Set while this thread advances operations: what they call starts no second round.
constinit thread_local bool advancing = false;

}  // namespace

class Progress::Round {
 public:
  explicit Round(const Rounds& rounds) : rounds_(rounds) {
    advancing = true;
    if (rounds_.begin) rounds_.begin();
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round() {
    if (rounds_.end) rounds_.end();
    advancing = false;
  }

 private:
  const Rounds& rounds_;
};

/// The operation that has waited longest, or the one that is wanted. It goes back to the list,
/// whatever ends the round: a callback of the program's may throw out of any call of MPI's.
class Progress::Taken {
 public:
  explicit Taken(Progress& progress, const Operation* wanted = nullptr)
      : progress_(progress), operation_(progress.pop(wanted, needed_host_)) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (operation_) progress_.push_back(std::move(operation_), is_over_, needed_host_);
  }

  Operation* operator->() const { return operation_.get(); }
  explicit operator bool() const { return operation_ != nullptr; }

  /// Returns whether it is over.
  bool advance() {
    is_over_ = operation_->advance();
    if (is_over_) progress_.end(*operation_);
    return is_over_;
  }

 private:
  Progress& progress_;
  bool needed_host_ = false;
  std::shared_ptr<Operation> operation_;
  bool is_over_ = false;
};

bool Progress::is_advancing() { return advancing; }

Progress::Pause::Pause() : was_advancing_(std::exchange(advancing, true)) {}
Progress::Pause::~Pause() { advancing = was_advancing_; }

std::shared_ptr<Operation> Progress::pop(const Operation* wanted, bool& needed_host) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      operations_, [&](const auto& one) { return !wanted || one.get() == wanted; });
  if (found == operations_.end()) return nullptr;
  std::shared_ptr<Operation> operation = std::move(*found);
  operations_.erase(found);
  needed_host = operation->needs_host();
  needed_now_ += needed_host;
  return operation;
}

void Progress::push_back(std::shared_ptr<Operation> operation, bool is_over, bool needed_host) {
  std::lock_guard lock(mutex_);
  needed_now_ -= needed_host;
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
  if (idle() || advancing) return false;
  const Round round(rounds_);
  bool ended = false;
  for (most = std::min(most, count_.load(std::memory_order_relaxed)); most > 0; --most) {
    Taken operation(*this);
    if (!operation) break;
    ended = operation.advance() || ended;
  }
  return ended;
}

void Progress::advance_one(const Operation& one) {
  if (advancing) return;
  const Round round(rounds_);
  Taken operation(*this, &one);
  if (operation) operation.advance();
}

bool Progress::advance_in_hook(std::size_t most) {
  if (idle()) return false;
  if (advancing) return true;
  const Round round(rounds_);
  for (std::size_t count = count_.load(std::memory_order_relaxed);
       count > 0 && most > 0 && may_run_in_hook(); --count) {
    Taken operation(*this);
    if (!operation) break;
    if (!operation->may_run_in_hook()) continue;
    --most;
    operation.advance();
  }
  return may_run_in_hook();
}

void Progress::flush() {
  if (idle() || advancing) return;
  wait_until([this] {
    std::lock_guard lock(mutex_);
    return needed_now_ == 0 &&
           std::none_of(operations_.begin(), operations_.end(),
                        [](const auto& operation) { return operation->needs_host(); });
  });
}

}  // namespace mpress::engine
