#include "mpi/loaded_mpi.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "trace/message.hpp"

namespace mpress::mpi {
namespace {

// Every MPI has it, and nobody has a reason to stand in for it.
constexpr const char* witness = "PMPI_Get_library_version";
constexpr std::size_t version_room = 16384;  // twice the most that an MPI asks for

struct Object {
  std::string path;  // empty: the program itself
  ElfW(Addr) base;
};

int list_object(dl_phdr_info* info, std::size_t, void* objects) {
  static_cast<std::vector<Object>*>(objects)->push_back({info->dlpi_name, info->dlpi_addr});
  return 0;
}

std::string library_version(void* get_library_version) {
  std::string text(version_room, '\0');
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(get_library_version)(text.data(), &length);
  text.resize(std::strcspn(text.c_str(), "\n"));
  return text;
}

Family family_of(const LoadedMpi& mpi) {
  const std::size_t slash = mpi.path.rfind('/');
  const char* name = mpi.path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  if (std::strncmp(name, "libmpi_abi.", 11) == 0) return Family::abi;
  if (::dlsym(mpi.handle, "ompi_mpi_comm_world")) return Family::openmpi;
  // MPICH and the libraries that promise its binary interface.
  for (const char* kin : {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation MPI"}) {
    if (mpi.version.find(kin) != std::string::npos) return Family::mpich;
  }
  return Family::unknown;
}

/// Before MPI runs, only the launcher's environment tells who we are: one rank speaks.
bool is_first_rank() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

}  // namespace

std::vector<LoadedMpi> loaded_mpis() {
  std::vector<Object> objects;
  ::dl_iterate_phdr(list_object, &objects);
  std::vector<LoadedMpi> found;
  for (const Object& object : objects) {
    void* handle =
        ::dlopen(object.path.empty() ? nullptr : object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* symbol = ::dlsym(handle, witness);
    if (is_defined_by(symbol, object.base)) {
      LoadedMpi mpi;
      mpi.handle = handle;
      mpi.path = object.path.empty() ? "the program itself" : object.path;
      mpi.version = library_version(symbol);
      mpi.family = family_of(mpi);
      found.push_back(std::move(mpi));
    } else {
      ::dlclose(handle);
    }
  }
  return found;
}

bool is_defined_by(const void* symbol, std::uintptr_t base) {
  Dl_info info;
  link_map* map = nullptr;
  return symbol && ::dladdr1(symbol, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) &&
         map->l_addr == base;
}

const char* family_name(Family family) {
  switch (family) {
    case Family::mpich: return "mpich";
    case Family::openmpi: return "openmpi";
    case Family::abi: return "abi";
    case Family::unknown: break;
  }
  return "unknown";
}

void stop_before_mpi(const std::string& message) {
  if (is_first_rank()) {
    trace::say(message);
  } else {
    // Launchers end the job with its first failure, perhaps before that rank has spoken.
    ::sleep(2);
  }
  ::_exit(2);
}

}  // namespace mpress::mpi
