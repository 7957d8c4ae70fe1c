/* Memory of the host or of a simulated device, with a copy on the host. */
#ifndef MPRESS_TESTS_DEVICE_MEMORY_H
#define MPRESS_TESTS_DEVICE_MEMORY_H

#include <stddef.h>

#include "check.h"
#include "simulated_gpu.h"

struct Memory {
  int device; /* or -1 */
  size_t bytes;
  char* data;
  char* shadow;
};

static inline struct Memory memory_on(int device, size_t bytes) {
  struct Memory m = {device, bytes, NULL, malloc(bytes)};
  m.data = device < 0 ? malloc(bytes) : sim_malloc(device, bytes);
  CHECK(m.data && m.shadow);
  return m;
}

/* From and to the copy. */
static inline void put(struct Memory* m) {
  if (m->device < 0) {
    memcpy(m->data, m->shadow, m->bytes);
  } else {
    sim_copy_in(m->data, m->shadow, m->bytes);
  }
}

static inline void get(struct Memory* m) {
  if (m->device < 0) {
    memcpy(m->shadow, m->data, m->bytes);
  } else {
    sim_copy_out(m->shadow, m->data, m->bytes);
  }
}

static inline void drop(struct Memory* m) {
  if (m->device < 0) {
    free(m->data);
  } else {
    sim_free(m->data);
  }
  free(m->shadow);
}

#endif
