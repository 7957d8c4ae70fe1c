// Calls that are passed on as machine words, whatever their signatures.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpress::front {

// No call in the tables takes or returns a floating-point number or a structure by value, and
// the platforms served (x86-64 and 64-bit ARM Linux) pass every integer or pointer argument in a
// register or stack slot of its own, of 8 bytes, whose upper half means nothing for an int. So
// handles may be integers (MPICH) or pointers (Open MPI, the standard ABI).
using Word = std::intptr_t;
static_assert(sizeof(Word) == 8, "arguments are passed on as 64-bit words");

}  // namespace mpress::front

#define MPRESS_PARAMETERS_0
#define MPRESS_PARAMETERS_1 Word a
#define MPRESS_PARAMETERS_2 MPRESS_PARAMETERS_1, Word b
#define MPRESS_PARAMETERS_3 MPRESS_PARAMETERS_2, Word c
#define MPRESS_PARAMETERS_4 MPRESS_PARAMETERS_3, Word d
#define MPRESS_PARAMETERS_5 MPRESS_PARAMETERS_4, Word e
#define MPRESS_PARAMETERS_6 MPRESS_PARAMETERS_5, Word f
#define MPRESS_PARAMETERS_7 MPRESS_PARAMETERS_6, Word g
#define MPRESS_PARAMETERS_8 MPRESS_PARAMETERS_7, Word h
#define MPRESS_PARAMETERS_9 MPRESS_PARAMETERS_8, Word i
#define MPRESS_PARAMETERS_10 MPRESS_PARAMETERS_9, Word j
#define MPRESS_PARAMETERS_11 MPRESS_PARAMETERS_10, Word k
#define MPRESS_PARAMETERS_12 MPRESS_PARAMETERS_11, Word l
#define MPRESS_PARAMETERS_13 MPRESS_PARAMETERS_12, Word m

#define MPRESS_ARGUMENTS_0
#define MPRESS_ARGUMENTS_1 a
#define MPRESS_ARGUMENTS_2 MPRESS_ARGUMENTS_1, b
#define MPRESS_ARGUMENTS_3 MPRESS_ARGUMENTS_2, c
#define MPRESS_ARGUMENTS_4 MPRESS_ARGUMENTS_3, d
#define MPRESS_ARGUMENTS_5 MPRESS_ARGUMENTS_4, e
#define MPRESS_ARGUMENTS_6 MPRESS_ARGUMENTS_5, f
#define MPRESS_ARGUMENTS_7 MPRESS_ARGUMENTS_6, g
#define MPRESS_ARGUMENTS_8 MPRESS_ARGUMENTS_7, h
#define MPRESS_ARGUMENTS_9 MPRESS_ARGUMENTS_8, i
#define MPRESS_ARGUMENTS_10 MPRESS_ARGUMENTS_9, j
#define MPRESS_ARGUMENTS_11 MPRESS_ARGUMENTS_10, k
#define MPRESS_ARGUMENTS_12 MPRESS_ARGUMENTS_11, l
#define MPRESS_ARGUMENTS_13 MPRESS_ARGUMENTS_12, m

// What a call goes to is at first a function that finds its target, so that afterwards a call costs
// one indirect jump. `find`: an expression that gives it.
#define MPRESS_TARGET(name, words, find)                                                         \
  namespace mpress::front {                                                                      \
  static Word first_##name(MPRESS_PARAMETERS_##words);                                           \
  static constinit std::atomic<Word (*)(MPRESS_PARAMETERS_##words)> target_##name{first_##name}; \
  static Word first_##name(MPRESS_PARAMETERS_##words) {                                          \
    auto* target = reinterpret_cast<Word (*)(MPRESS_PARAMETERS_##words)>(find);                  \
    target_##name.store(target, std::memory_order_release);                                      \
    return target(MPRESS_ARGUMENTS_##words);                                                     \
  }                                                                                              \
  }
#define MPRESS_EXPORT(prefix, name, words)                                                         \
  extern "C" __attribute__((visibility("default"))) mpress::front::Word prefix##name(              \
      MPRESS_PARAMETERS_##words) {                                                                 \
    return mpress::front::target_##name.load(std::memory_order_acquire)(MPRESS_ARGUMENTS_##words); \
  }

using mpress::front::Word;
