// The collective calls of a team that mpress may serve: in which order who serves them is
// decided, and which tags their blocks have.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/operation.hpp"

namespace mpress::engine {

/// Members make such calls in one order, whatever their forms, and draw a number for each. Who
/// serves a call is decided call by call in that order, so members that begin agreements, and give
/// out tags, do so alike. Thread-safe; one thread at a time makes calls.
class CallOrder {
 public:
  // Turns.

  std::uint64_t draw() { return drawn_.fetch_add(1, std::memory_order_relaxed); }
  bool is_turn(std::uint64_t number) const {
    return decided_.load(std::memory_order_acquire) == number;
  }
  /// Are all calls decided? Then the next one may be without a turn, by whoever makes it.
  bool is_idle() const {
    return decided_.load(std::memory_order_acquire) == drawn_.load(std::memory_order_relaxed);
  }
  /// Do all members know that the team is decided, and so are all calls before the next one? Once
  /// a call that may wait was. Then decisions that take no agreement are made at once.
  bool is_settled() const { return is_settled_; }
  void settle() { is_settled_ = true; }
  /// The call whose turn it is has been decided. Returns the next one, where that stands in line.
  std::shared_ptr<Operation> pass() {
    const std::uint64_t next = decided_.fetch_add(1) + 1;
    return standing_.load() > 0 ? leave_line(next) : nullptr;
  }

  /// A call that waits for its turn may stand in line: it need not be let proceed before. False
  /// where its turn has come.
  bool stand_in_line(std::uint64_t number, std::shared_ptr<Operation> call) {
    const std::lock_guard lock(mutex_);
    standing_.fetch_add(1);  // before it is looked at, so that who passes sees one or the other
    if (decided_.load() == number) {
      standing_.fetch_sub(1);
      return false;
    }
    line_.emplace(number, std::move(call));
    return true;
  }

  // Tags, from 0: many calls are under way at once, and a receive takes the first message of its
  // tag. Blocking and non-blocking calls use one range in turn, in the order of the calls;
  // persistent ones another, in the order in which they were made, as their starts may come in
  // any order.

  static constexpr std::uint32_t call_tags = 4096;
  static constexpr std::uint32_t persistent_tags = 4096;
  static constexpr std::uint32_t tags = call_tags + persistent_tags;

  /// Those whose turn it is:
  std::uint32_t next_tag() { return static_cast<std::uint32_t>(calls_++ % call_tags); }
  /// How many persistent calls came before this one.
  std::uint64_t next_persistent() { return persistent_++; }
  static std::uint32_t persistent_tag(std::uint64_t number) {
    return call_tags + static_cast<std::uint32_t>(number % persistent_tags);
  }

  /// False while a call with this tag is under way in this process. Once that is over here, all
  /// that it sent was sent, and all its receives were posted: what follows under its tag comes
  /// behind, as MPI keeps the order of two ranks' messages.
  bool take(std::uint32_t tag) { return !slot(tag).exchange(true, std::memory_order_acquire); }
  void give(std::uint32_t tag) { slot(tag).store(false, std::memory_order_release); }
  bool is_taken(std::uint32_t tag) { return slot(tag).load(std::memory_order_relaxed); }

 private:
  std::atomic<bool>& slot(std::uint32_t tag) {
    if (!taken_) taken_ = std::make_unique<std::array<std::atomic<bool>, tags>>();
    return (*taken_)[tag];
  }

  std::shared_ptr<Operation> leave_line(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = line_.find(number);
    if (found == line_.end()) return nullptr;
    std::shared_ptr<Operation> call = std::move(found->second);
    line_.erase(found);
    standing_.fetch_sub(1);
    return call;
  }

  std::atomic<std::uint64_t> drawn_{0};
  std::atomic<std::uint64_t> decided_{0};
  std::atomic<std::size_t> standing_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Operation>> line_;  ///< under the mutex
  bool is_settled_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t persistent_ = 0;
  std::unique_ptr<std::array<std::atomic<bool>, tags>> taken_;
};

}  // namespace mpress::engine
