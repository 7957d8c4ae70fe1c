// How simulated work waits for that of other members.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace mpress::simulated {

/// Short, so that work is given again.
inline constexpr std::chrono::milliseconds timeout{3};

/// Of threads that sleep meanwhile: shorter sleeps take processors from those that are waited for.
inline constexpr std::chrono::microseconds between_looks{100};

/// `stop`: null; or without end, until that is not 0.
template <class Look>
bool await(Look look, std::uint32_t* stop) {
  if (look()) return true;  // without a look at the clock, which takes longer than most lines
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!look()) {
    if (!stop && std::chrono::steady_clock::now() > end) return false;
    if (stop && std::atomic_ref(*stop).load() != 0) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

template <class Look>
bool await(Look look) {
  return await(look, nullptr);
}

}  // namespace mpress::simulated
