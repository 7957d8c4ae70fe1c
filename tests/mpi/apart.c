/* To be preloaded: no process finds the files of another, as in containers with process numbers of
 * their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

typedef int opening(const char* path, int flags, ...);

static int is_hidden(const char* path) {
  return strncmp(path, "/proc/", 6) == 0 && strncmp(path, "/proc/self/", 11) != 0 &&
         strstr(path, "/fd/") != NULL;
}

#define OPEN(name)                                                 \
  int name(const char* path, int flags, ...) {                     \
    va_list more;                                                  \
    va_start(more, flags);                                         \
    const int mode = flags & O_CREAT ? va_arg(more, int) : 0;      \
    va_end(more);                                                  \
    if (is_hidden(path)) {                                         \
      errno = ENOENT;                                              \
      return -1;                                                   \
    }                                                              \
    return ((opening*)dlsym(RTLD_NEXT, #name))(path, flags, mode); \
  }

OPEN(open)
OPEN(open64)
