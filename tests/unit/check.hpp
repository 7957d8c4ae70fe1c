// The least that a unit test needs: conditions that are counted, and an exit status.
#pragma once

#include <cstdio>

namespace check {

inline int failures = 0;

inline void expect(bool condition, const char* text, const char* file, int line) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
  ++failures;
}

}  // namespace check

#define CHECK(condition) check::expect((condition), #condition, __FILE__, __LINE__)
