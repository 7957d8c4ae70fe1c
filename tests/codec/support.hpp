// What the codecs' tests share: counted conditions, guarded memory, random numbers without libm.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "codec/element.hpp"

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

// Memory that ends where a page without access begins: a step beyond it is a crash.
class Guarded {
 public:
  explicit Guarded(std::size_t most) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    room_ = (most + page - 1) / page * page + page;
    void* p =
        mmap(nullptr, room_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    base_ = static_cast<unsigned char*>(p);
    if (mprotect(base_ + room_, page, PROT_NONE) != 0) std::abort();
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // The last `bytes` of it.
  unsigned char* last(std::size_t bytes) { return base_ + room_ - bytes; }

 private:
  unsigned char* base_;
  std::size_t room_;
};

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
