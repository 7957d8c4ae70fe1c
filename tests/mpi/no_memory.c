/* To be preloaded: no memory can be had that processes share, but for the first PIECES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#ifndef PIECES
#define PIECES 0
#endif

int memfd_create(const char* name, unsigned flags) {
  static int pieces = 0;
  if (strcmp(name, "mpress-host") != 0 || pieces++ < PIECES) {
    return ((int (*)(const char*, unsigned))dlsym(RTLD_NEXT, "memfd_create"))(name, flags);
  }
  errno = ENOSPC;
  return -1;
}
