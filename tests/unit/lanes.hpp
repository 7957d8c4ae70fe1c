// Work in lanes, waited for, and data for it.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "check.hpp"
#include "gpu/gpu.hpp"

namespace mpress {

using gpu::Lane;
using gpu::Outcome;
using gpu::State;
using gpu::Ticket;

inline State finish(Lane& lane, Ticket ticket, Outcome* outcome = nullptr) {
  for (;;) {
    const State state = lane.look(ticket, outcome);
    if (state != State::pending) return state;
  }
}

inline void put(Lane& lane, void* to, const void* from, std::size_t bytes) {
  CHECK(finish(lane, lane.copy(to, from, bytes)) == State::done);
}

inline std::vector<std::byte> bytes_of(Lane& lane, const void* memory, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  put(lane, result.data(), memory, bytes);
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
