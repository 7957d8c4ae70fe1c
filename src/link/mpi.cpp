#include "link/mpi.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "trace/message.hpp"

namespace mpress::link {
namespace {

#if defined(MPI_ABI_VERSION)
constexpr const char* expected_mpi = "the MPI standard ABI";
#elif defined(OPEN_MPI)
constexpr const char* expected_mpi = "Open MPI";
#else
constexpr const char* expected_mpi = "MPICH and its ABI";
#endif

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

struct Library {
  void* handle = nullptr;
  std::string path;
};

/// Looks among the loaded libraries for one that defines PMPI_Init: an interpreter may have
/// loaded MPI where a global look-up does not reach.
int find_library(dl_phdr_info* info, std::size_t, void* result) {
  const char* path = info->dlpi_name;
  if (!path || !std::strstr(base_name(path), "mpi")) return 0;
  void* handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return 0;
  if (::dlsym(handle, "PMPI_Init")) {
    auto& library = *static_cast<Library*>(result);
    library.handle = handle;
    library.path = path;
    return 1;
  }
  ::dlclose(handle);
  return 0;
}

Library loaded_mpi() {
  Library library;
  if (void* symbol = ::dlsym(RTLD_DEFAULT, "PMPI_Init")) {
    library.handle = RTLD_DEFAULT;
    Dl_info info;
    if (::dladdr(symbol, &info) && info.dli_fname) library.path = info.dli_fname;
  } else {
    ::dl_iterate_phdr(find_library, &library);
  }
  return library;
}

const char* found_mpi(const Library& library) {
  if (std::strstr(library.path.c_str(), "libmpi_abi")) return "the MPI standard ABI";
  if (::dlsym(library.handle, "ompi_mpi_comm_world")) return "Open MPI";
  return "MPICH and its ABI";
}

MpiCalls bind() {
  const Library library = loaded_mpi();
  if (!library.path.empty() && std::strcmp(found_mpi(library), expected_mpi) != 0) {
    fatal("this preload library was built for " + std::string(expected_mpi) +
          ", but the program uses " + found_mpi(library) + " (" + library.path +
          "); rebuild mpress with MPICC set to that MPI's compiler");
  }
  MpiCalls calls{};
#define MPRESS_BIND(name) \
  calls.name = reinterpret_cast<decltype(calls.name)>(::dlsym(library.handle, "PMPI_" #name));
  MPRESS_MPI_CALLS(MPRESS_BIND)
#undef MPRESS_BIND
  const char* missing = nullptr;
#define MPRESS_CHECK(name) \
  if (!calls.name) missing = "PMPI_" #name;
  MPRESS_MPI_CALLS(MPRESS_CHECK)
#undef MPRESS_CHECK
  if (missing) {
    fatal(std::string("the program called MPI, but ") + missing + " was not found in " +
          (library.path.empty() ? "any loaded library" : library.path));
  }
  return calls;
}

bool bound = false;

/// Before MPI runs, only the launcher's environment tells who we are: one rank speaks.
bool is_first_rank() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

}  // namespace

const MpiCalls& mpi() {
  static const MpiCalls calls = [] {
    MpiCalls result = bind();
    bound = true;
    return result;
  }();
  return calls;
}

void* find_symbol(const char* name) { return ::dlsym(loaded_mpi().handle, name); }

const char* compiled_mpi() { return expected_mpi; }

void fatal(const std::string& message) {
  int running = 0;
  if (bound) {
    int finalized = 0;
    mpi().Initialized(&running);
    mpi().Finalized(&finalized);
    running = running && !finalized;
  }
  if (running || is_first_rank()) trace::say(message);
  if (running) mpi().Abort(MPI_COMM_WORLD, 2);
  ::_exit(2);
}

}  // namespace mpress::link
