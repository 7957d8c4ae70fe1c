/* For libraries that stand in for dlsym(), by which mpress finds MPI's functions. To be included
 * first. */
#ifndef MPRESS_TESTS_LOOK_UP_H
#define MPRESS_TESTS_LOOK_UP_H

#define _GNU_SOURCE
#include <dlfcn.h>

/* What dlsym() of the C library finds. */
static void* look_up(void* handle, const char* name) {
  static const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
  static void* (*own)(void*, const char*);
  for (int i = 0; i < 3 && !own; ++i) *(void**)&own = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return own(handle, name);
}

#endif
