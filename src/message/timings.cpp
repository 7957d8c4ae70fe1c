#include "message/timings.hpp"

#include <utility>

#include "core/changes.hpp"
#include "core/runtime.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Its receiver may never take the message: then another one is timed.
constexpr std::uint64_t given_up_ns = 5'000'000'000;

/// Of the time from when a message was begun until that is known here.
constexpr std::uint64_t most_unaccounted = 2;

}  // namespace

policy::Timing Timings::judge(const policy::Subject& subject, bool is_encoded) {
  if (!is_open_) return policy::Timing::none;
  hear(subject.path.peer);
  if (is_under_way_.load(std::memory_order_relaxed)) return policy::Timing::none;
  return runtime_.policy.judge_timing(subject, is_encoded, trace::now_ns);
}

bool Timings::begin(std::uint32_t number, const policy::Subject& subject, bool is_encoded) {
  std::lock_guard lock(mutex_);
  if (under_way_) return false;
  under_way_.emplace(UnderWay{number, subject, is_encoded, trace::now_ns()});
  is_under_way_.store(true, std::memory_order_relaxed);
  return true;
}

/// Another one may be timed now. Under the lock.
std::optional<Timings::UnderWay> Timings::end() {
  is_under_way_.store(false, std::memory_order_relaxed);
  return std::exchange(under_way_, std::nullopt);
}

void Timings::drop(std::uint32_t number) {
  std::optional<UnderWay> over;
  {
    std::lock_guard lock(mutex_);
    if (!under_way_ || under_way_->number != number) return;
    over = end();
  }
  runtime_.policy.not_timed(over->subject, over->is_encoded);
}

void Timings::sent(std::uint32_t number, std::size_t wire_bytes) {
  std::lock_guard lock(mutex_);
  if (under_way_ && under_way_->number == number) under_way_->wire_bytes = wire_bytes;
}

void Timings::look() {
  const auto told = runtime_.links.channel.take_reader_time();  // no lock is held while MPI runs
  std::optional<UnderWay> over;
  bool is_told = false;
  {
    std::lock_guard lock(mutex_);
    if (!under_way_) return;
    is_told = told && told->number == under_way_->number;
    if (!is_told && trace::now_ns() - under_way_->begin_ns < given_up_ns) return;
    over = end();
  }
  // Where it was on its way for much longer than its receiver was at it, most of it had come before
  // that was there; or this process has not looked for long, and cannot tell.
  const std::uint64_t took_ns = is_told ? told->ns : 0;
  const bool was_awaited = took_ns >= (trace::now_ns() - over->begin_ns) / most_unaccounted;
  if (took_ns == 0 || over->wire_bytes == 0 || !was_awaited) {
    return runtime_.policy.not_timed(over->subject, over->is_encoded);
  }
  const bool has_changed =
      runtime_.policy.timed(over->subject, over->wire_bytes, took_ns, over->is_encoded);
  if (has_changed) note_change();  // no decision stands any more
  tell(over->subject.path.peer);
}

/// What another rank of this host has learned since.
void Timings::hear(policy::Peer peer) {
  if (!of_host_) return;
  const auto kind = static_cast<std::size_t>(peer);
  const link::Sheet::Seen& seen = of_host_->seen[kind];
  const std::uint64_t count = seen.count.load(std::memory_order_acquire);
  std::atomic<std::uint64_t>& heard = heard_[kind];
  if (heard.load(std::memory_order_relaxed) == count) return;
  if (heard.exchange(count, std::memory_order_relaxed) == count) return;
  runtime_.policy.heard(peer, seen.rate.load(std::memory_order_relaxed));
}

void Timings::tell(policy::Peer peer) {
  if (!of_host_) return;
  const auto kind = static_cast<std::size_t>(peer);
  link::Sheet::Seen& seen = of_host_->seen[kind];
  seen.rate.store(runtime_.policy.rate(peer), std::memory_order_relaxed);
  std::uint64_t known = seen.count.fetch_add(1, std::memory_order_acq_rel);
  heard_[kind].compare_exchange_strong(known, known + 1, std::memory_order_relaxed);
}

}  // namespace mpress::engine
