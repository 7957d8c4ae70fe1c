// What the codecs' tests share: counted conditions, guarded memory, random numbers without libm.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "codec/element.hpp"
#include "guarded.hpp"

inline int failures = 0;

#define CHECK(condition, ...)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      ++failures;                                                 \
      std::printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::printf(__VA_ARGS__);                                   \
      std::printf("\n");                                          \
    }                                                             \
  } while (false)

template <class T>
constexpr mpress::ElementType type_of =
    sizeof(T) == 4 ? mpress::ElementType::f32 : mpress::ElementType::f64;

// splitmix64: the same numbers everywhere.
struct SplitMix {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
};
