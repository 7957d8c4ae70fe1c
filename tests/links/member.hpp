// One of the members between which tests run links: a rank of MPI's, or a thread.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "core/backoff.hpp"
#include "link/liveness.hpp"
#include "unit/check.hpp"

namespace mpress::links {

/// The calling thread, which others see ending as they see a process: the system numbers both.
inline link::ProcessId own_thread() { return {::gettid(), link::own_process().space}; }

class Member {
 public:
  virtual ~Member() = default;

  virtual void barrier() = 0;

  /// Messages of the test's own, beside what the links carry; in order.
  virtual void send(std::span<const std::byte> data, int to) = 0;
  virtual void receive(std::span<std::byte> data, int from) = 0;

  virtual void advance() {}

  /// It will not do its part of the test any more.
  virtual void give_up() {}

  /// Advances until `done()`; fails, and returns false, after a minute.
  template <typename Done>
  bool wait(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (engine::Backoff backoff(100); !done(); backoff.pause()) {
      advance();
      if (std::chrono::steady_clock::now() > end) {
        CHECK(!"in time");
        give_up();
        return false;
      }
    }
    return true;
  }

  unsigned up_to(std::size_t most) { return static_cast<unsigned>(random() % (most + 1)); }
  bool one_in(unsigned many) { return random() % many == 0; }

  /// Lets the members be at different places.
  void dawdle() {
    switch (random() % 4) {
      case 0: ::usleep(static_cast<useconds_t>(random() % most_dawdled_us)); break;
      case 1: advance(); break;
      default: break;
    }
  }

  template <class T>
  void tell(const T& value, int to) {
    send(std::as_bytes(std::span(&value, 1)), to);
  }
  template <class T>
  T hear(int from) {
    T value;
    receive(std::as_writable_bytes(std::span(&value, 1)), from);
    return value;
  }

  /// What `own` is on all members.
  template <class T>
  std::vector<T> of_all(const T& own) {
    std::vector<T> all;
    for (int other = 0; other < size; ++other) {
      if (other != rank) tell(own, other);
    }
    for (int other = 0; other < size; ++other) {
      all.push_back(other == rank ? own : hear<T>(other));
    }
    return all;
  }

  int rank = 0;
  int size = 0;
  std::mt19937 random;
  unsigned most_dawdled_us = 300;
};

}  // namespace mpress::links
