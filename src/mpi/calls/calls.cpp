#include "mpi/calls/calls.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "config/machine.hpp"
#include "mpi/calls/blocking_calls.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/calls/checked_calls.hpp"
#include "mpi/loaded_mpi.hpp"
#include "trace/message.hpp"

namespace mpress::mpi {
namespace {

void* bound_library = nullptr;

}  // namespace

Calls bound_calls;

void bind(void* library, const char* path) {
#define MPRESS_BIND_AS(prefix, name) \
  bound_calls.name =                 \
      reinterpret_cast<decltype(bound_calls.name)>(::dlsym(library, prefix "_" #name));
#define MPRESS_BIND(name) MPRESS_BIND_AS("PMPI", name)
  MPRESS_MPI_CALLS(MPRESS_BIND)
#undef MPRESS_BIND
#define MPRESS_BIND(name) MPRESS_BIND_AS("PMPIX", name)
  MPRESS_MPIX_CALLS(MPRESS_BIND)
#undef MPRESS_BIND
#undef MPRESS_BIND_AS
#define MPRESS_CHECK(name)                                                                 \
  if (!bound_calls.name) {                                                                 \
    stop_before_mpi(std::string(path) + " has no PMPI_" #name ", which MPI 3.0 asks for"); \
  }
  MPRESS_MPI_3_CALLS(MPRESS_CHECK)
#undef MPRESS_CHECK
  stand_in(bound_calls);
  bind_buffer_calls(library);
  bind_checked_calls(library);
  bind_blocking_calls(library);
  bound_library = library;
}

void* find_symbol(const char* name) {
  // A program may hold a copy of the library's data, and the library then uses that copy too.
  void* found = ::dlsym(RTLD_DEFAULT, name);
  return found ? found : ::dlsym(bound_library, name);
}

const char* compiled_mpi() {
#if defined(OPEN_MPI)
  return "Open MPI";
#elif defined(MPICH_VERSION)
  return "MPICH and its ABI";
#else
  return "the MPI standard ABI";
#endif
}

std::string library_name() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');  // too long for small stacks
  int length = 0;
  calls().Get_library_version(text.data(), &length);
  return mpi_name(text.c_str());
}

void fatal(const std::string& message) {
  int running = 0;
  int finalized = 0;
  calls().Initialized(&running);
  calls().Finalized(&finalized);
  if (!running || finalized) stop_before_mpi(message);
  trace::say(message);
  calls().Abort(MPI_COMM_WORLD, 2);
  ::_exit(2);
}

}  // namespace mpress::mpi
