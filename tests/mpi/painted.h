/* The stack that a function needs, found in a thread whose stack was painted before. */
#ifndef MPRESS_TESTS_PAINTED_H
#define MPRESS_TESTS_PAINTED_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static const size_t painted_words = (4u << 20) / sizeof(uint64_t);
static const uint64_t paint = 0x5AA5C33C0FF0A55Aull;

struct painted_call {
  void (*function)(void*);
  void* argument;
};

static void* painted_run(void* call) {
  const struct painted_call* const it = (const struct painted_call*)call;
  it->function(it->argument);
  return NULL;
}

/* In bytes. All that the thread had counts: static thread-local storage lies there, too. */
static inline size_t stack_of(void (*function)(void*), void* argument) {
  const size_t bytes = painted_words * sizeof paint;
  uint64_t* const stack =
      (uint64_t*)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct painted_call call = {function, argument};
  pthread_t thread;
  pthread_attr_t attributes;
  if (stack == MAP_FAILED) abort();
  for (size_t i = 0; i < painted_words; ++i) stack[i] = paint;
  if (pthread_attr_init(&attributes) != 0) abort();
  if (pthread_attr_setstack(&attributes, stack, bytes) != 0) abort();
  if (pthread_create(&thread, &attributes, painted_run, &call) != 0) abort();
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  size_t left = 0;
  while (left < painted_words && stack[left] == paint) ++left;
  munmap(stack, bytes);
  return (painted_words - left) * sizeof paint;
}
#endif
