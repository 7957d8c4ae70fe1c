// Random numbers that are the same everywhere: the standard's distributions are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stress {

/// Spreads the bits of `x` (the finaliser of splitmix64).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ b); }

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t next() { return mix(state_++); }

  /// At least 0 and less than `n`, which is positive.
  int below(std::size_t n) { return static_cast<int>(next() % n); }

  std::size_t between(std::size_t lowest, std::size_t highest) {
    return lowest + next() % (highest - lowest + 1);
  }

  bool chance(int percent) { return below(100) < percent; }

  template <typename T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(list.size()))];
  }

  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace stress
