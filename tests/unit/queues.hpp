// Work in queues, waited for, and data for it.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"
#include "gpu/gpu.hpp"

namespace mpress {

using gpu::Event;
using gpu::Outcome;
using gpu::Queue;
using gpu::State;

inline State finish(Queue& queue, Event event, Outcome* outcome = nullptr) {
  for (;;) {
    const State state = queue.query(event, outcome);
    if (state != State::pending) return state;
    std::this_thread::yield();
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
  std::mt19937 random(seed);
  std::vector<std::byte> result(bytes);
  for (std::byte& b : result) b = static_cast<std::byte>(random());
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

}  // namespace mpress
