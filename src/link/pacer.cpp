#include "link/pacer.hpp"

#include <time.h>

#include <algorithm>

#include "codec/float_environment.hpp"
#include "trace/record.hpp"

namespace mpress::link {
namespace {

void sleep_until(std::uint64_t at_ns) {
  const timespec at{static_cast<time_t>(at_ns / 1000000000u),
                    static_cast<long>(at_ns % 1000000000u)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
  }
}

}  // namespace

void Pacer::arrive(std::size_t bytes, std::uint64_t begin_ns) {
  const std::uint64_t duration =
      compute([&] { return static_cast<std::uint64_t>(static_cast<double>(bytes) / rate_ * 1e9); });
  std::uint64_t arrival;
  {
    std::lock_guard lock(mutex_);
    arrival = std::max(link_free_ns_, begin_ns) + duration;
    link_free_ns_ = arrival;
  }
  if (arrival > trace::now_ns()) sleep_until(arrival);
}

}  // namespace mpress::link
