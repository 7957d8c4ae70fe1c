// Work in queues, waited for, and data for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "check.hpp"
#include "gpu/queue.hpp"

namespace mpress {

using gpu::Event;
using gpu::Outcome;
using gpu::Queue;
using gpu::State;

inline State finish(Queue& queue, Event event, Outcome* outcome = nullptr) {
  for (int look = 0;; ++look) {
    const State state = queue.query(event, outcome);
    if (state != State::pending) return state;
    // Simulated queues that have no thread wait for a few looks.
    if (look < 4) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

inline void put(Queue& queue, void* to, const void* from, std::size_t bytes) {
  CHECK(finish(queue, queue.copy(to, from, bytes)) == State::done);
}

inline std::vector<std::byte> bytes_of(Queue& queue, const void* memory, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  put(queue, result.data(), memory, bytes);
  return result;
}

inline std::vector<std::byte> noise(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(result.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return result;
}

template <class T>
std::vector<T> wave(std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<T>(std::sin(static_cast<double>(i) * 0.01) * 3 + 0.25);
  }
  return result;
}

/// A joint call of members with a queue each: give(i, again) gives that of member `i`, and returns
/// its event. One that is done is given again if is_undone(i). `late`: the member of that number
/// comes when the others have given up; 0: none does.
template <class Give, class IsUndone>
void call_jointly(std::span<const std::unique_ptr<Queue>> queues, unsigned late, const Give& give,
                  const IsUndone& is_undone) {
  const auto members = static_cast<unsigned>(queues.size());
  std::vector<Event> events(members);
  for (unsigned step = 0; step < members; ++step) {
    const unsigned i = (step + late + 1) % members;
    if (late > 0 && step + 1 == members) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    events[i] = give(i, false);
  }
  std::vector<bool> is_over(members);
  while (!std::all_of(is_over.begin(), is_over.end(), [](bool over) { return over; })) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // leaves a core to the others
    for (unsigned i = 0; i < members; ++i) {
      if (is_over[i]) continue;
      const State state = queues[i]->query(events[i]);
      CHECK(state != State::failed);
      if (state != State::done) continue;
      is_over[i] = !is_undone(i);
      if (!is_over[i]) events[i] = give(i, true);
    }
  }
}

}  // namespace mpress
