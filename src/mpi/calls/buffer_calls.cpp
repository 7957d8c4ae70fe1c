#include "mpi/calls/buffer_calls.hpp"

#include <dlfcn.h>

namespace mpress::mpi {

BufferCalls bound_buffer_calls;

void bind_buffer_calls(void* library) {
#define MPRESS_BIND(name)   \
  bound_buffer_calls.name = \
      reinterpret_cast<decltype(bound_buffer_calls.name)>(::dlsym(library, "PMPI_" #name));
#define MPRESS_BIND_COLLECTIVE(name, immediate, describe, ...) \
  MPRESS_BIND(name)                                            \
  MPRESS_BIND(name##_c)                                        \
  MPRESS_BIND(immediate)                                       \
  MPRESS_BIND(immediate##_c)                                   \
  MPRESS_BIND(name##_init)                                     \
  MPRESS_BIND(name##_init_c)
#define MPRESS_BIND_LOCAL(name, describe, ...) \
  MPRESS_BIND(name)                            \
  MPRESS_BIND(name##_c)
  MPRESS_COLLECTIVES(MPRESS_BIND_COLLECTIVE)
  MPRESS_LOCAL_CALLS(MPRESS_BIND_LOCAL)
#undef MPRESS_BIND
#undef MPRESS_BIND_COLLECTIVE
#undef MPRESS_BIND_LOCAL
}

}  // namespace mpress::mpi
