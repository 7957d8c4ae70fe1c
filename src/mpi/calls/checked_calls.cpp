#include "mpi/calls/checked_calls.hpp"

#include <dlfcn.h>

namespace mpress::mpi {

CheckedCalls bound_checked_calls;

void bind_checked_calls(void* library) {
#define MPRESS_BIND(name, ...) \
  bound_checked_calls.name =   \
      reinterpret_cast<decltype(bound_checked_calls.name)>(::dlsym(library, "PMPI_" #name));
#define MPRESS_BIND_BOTH(name, ...) MPRESS_BIND(name) MPRESS_BIND(name##_c)
  MPRESS_CHECKED_BOTH_FORMS(MPRESS_BIND_BOTH)
  MPRESS_CHECKED_ONE_FORM(MPRESS_BIND)
#undef MPRESS_BIND
#undef MPRESS_BIND_BOTH
}

}  // namespace mpress::mpi
