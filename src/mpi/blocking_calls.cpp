#include "mpi/blocking_calls.hpp"

#include <dlfcn.h>

namespace mpress::mpi {

BlockingCalls bound_blocking_calls;

void bind_blocking_calls(void* library) {
#define MPRESS_BIND(name, ...) \
  bound_blocking_calls.name =  \
      reinterpret_cast<decltype(bound_blocking_calls.name)>(::dlsym(library, "PMPI_" #name));
  MPRESS_BLOCKING(MPRESS_BIND)
#undef MPRESS_BIND
}

}  // namespace mpress::mpi
