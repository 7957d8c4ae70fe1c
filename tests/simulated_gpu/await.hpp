// How simulated work waits for that of other members.
#pragma once

#include <chrono>
#include <thread>

namespace mpress::simulated {

/// Short, so that work is given again.
inline constexpr std::chrono::milliseconds patience{3};

template <class Look>
bool await(Look look) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!look()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace mpress::simulated
