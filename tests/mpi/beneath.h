/* For test programs that look beneath mpress. To be included first. */
#ifndef MPRESS_TESTS_BENEATH_H
#define MPRESS_TESTS_BENEATH_H

#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

/* The MPI library's own function, past everything that stands in for it. */
static void* own_function(const char* name) {
  Dl_info info;
  void* library;
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_processor_name"), &info));
  library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  CHECK(library);
  return dlsym(library, name);
}

typedef int (*OwnRecv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
typedef int (*OwnSend)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

#endif
