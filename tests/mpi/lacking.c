/* A library preloaded beside mpress that makes MPI look older: LACKING names a function that cannot
 * be found in any library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void* (*LookUp)(void*, const char*);

void* dlsym(void* handle, const char* name) {
  static const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
  static LookUp look_up;
  const char* lacking = getenv("LACKING");
  for (int i = 0; i < 3 && !look_up; ++i) {
    look_up = (LookUp)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  }
  return lacking && strcmp(name, lacking) == 0 ? NULL : look_up(handle, name);
}
