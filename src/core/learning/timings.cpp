#include "core/learning/timings.hpp"

#include <utility>

#include "core/changes.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

/// Its receiver may never take the message: then another one is timed.
constexpr std::uint64_t given_up_ns = 5'000'000'000;

/// Of the time from when a message was begun until that is known here.
constexpr std::uint64_t most_unaccounted = 2;

}  // namespace

void Timings::open(link::Sheet* sheet) {
  for (std::size_t peer = 0; peer < policy::peer_count; ++peer) {
    of_host_[peer].open(sheet, static_cast<policy::Peer>(peer));
  }
  is_open_ = true;
}

policy::Timing Timings::judge(const policy::Subject& subject, bool is_encoded) {
  if (!is_open_) return policy::Timing::none;
  const policy::Peer peer = subject.path.peer;
  const double published = of_host_[policy::index(peer)].take();
  if (published != 0) runtime_.policy.links().adopt(peer, published);
  if (is_in_flight_.load(std::memory_order_relaxed)) return policy::Timing::none;
  return runtime_.policy.judge_timing(subject, is_encoded, trace::now_ns);
}

bool Timings::begin(std::uint32_t number, const policy::Subject& subject, bool is_encoded) {
  std::lock_guard lock(mutex_);
  if (in_flight_) return false;
  in_flight_.emplace(InFlight{number, subject, is_encoded, trace::now_ns()});
  is_in_flight_.store(true, std::memory_order_relaxed);
  return true;
}

/// Another one may be timed now. Under the lock.
std::optional<Timings::InFlight> Timings::end() {
  is_in_flight_.store(false, std::memory_order_relaxed);
  return std::exchange(in_flight_, std::nullopt);
}

void Timings::drop(std::uint32_t number) {
  std::optional<InFlight> over;
  {
    std::lock_guard lock(mutex_);
    if (!in_flight_ || in_flight_->number != number) return;
    over = end();
  }
  runtime_.policy.links().lose(over->subject.path.peer, !over->is_encoded);
}

void Timings::sent(std::uint32_t number, std::size_t wire_bytes) {
  std::lock_guard lock(mutex_);
  if (in_flight_ && in_flight_->number == number) in_flight_->wire_bytes = wire_bytes;
}

void Timings::look() {
  const auto report = runtime_.links.channel.take_reader_time();  // no lock is held while MPI runs
  std::optional<InFlight> over;
  bool is_reported = false;
  {
    std::lock_guard lock(mutex_);
    if (!in_flight_) return;
    is_reported = report && report->number == in_flight_->number;
    if (!is_reported && trace::now_ns() - in_flight_->begin_ns < given_up_ns) return;
    over = end();
  }
  // Where it was on its way for much longer than its receiver was at it, most of it had come before
  // that was there; or this process has not looked for long, and does not know.
  const std::uint64_t took_ns = is_reported ? report->ns : 0;
  const bool was_awaited = took_ns >= (trace::now_ns() - over->begin_ns) / most_unaccounted;
  const policy::Peer peer = over->subject.path.peer;
  policy::LinkModel& links = runtime_.policy.links();
  if (took_ns == 0 || over->wire_bytes == 0 || !was_awaited) {
    return links.lose(peer, !over->is_encoded);
  }
  const double codec_seconds = over->is_encoded ? runtime_.policy.codec_seconds(over->subject) : 0;
  const bool has_changed = links.observe(peer, over->wire_bytes, took_ns, codec_seconds);
  if (has_changed) note_change();  // no decision stands any more
  of_host_[policy::index(peer)].publish(links.rate(peer));
}

}  // namespace mpress::engine
