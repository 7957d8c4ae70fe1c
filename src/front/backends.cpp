#include "front/backends.hpp"

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "config/version.hpp"
#include "front/backend.hpp"
#include "mpi/loaded_mpi.hpp"

namespace mpress::front {
namespace {

constexpr const char* call_names[call_count] = {
#define MPRESS_NAME(name, words) "MPI_" #name,
#define MPRESS_NAME_BOTH(name, words) "MPI_" #name, "MPI_" #name "_c",
#define MPRESS_EXTENSION_NAME(name, words) "MPIX_" #name,
    MPRESS_OTHER_CALLS(MPRESS_NAME) MPRESS_EXTENSION_CALLS(MPRESS_EXTENSION_NAME)
        MPRESS_COUNTED_CALLS(MPRESS_NAME_BOTH) MPRESS_STAGED_CALLS(MPRESS_NAME_BOTH)
            MPRESS_CHECKED_CALLS(MPRESS_NAME_BOTH) MPRESS_CHECKED_CALLS_OF_ONE_FORM(MPRESS_NAME)
                MPRESS_BLOCKING_CALLS(MPRESS_NAME) MPRESS_CALLS_PASSED_BY(MPRESS_NAME)
#undef MPRESS_EXTENSION_NAME
#undef MPRESS_NAME
#undef MPRESS_NAME_BOTH
};

std::string described(const mpi::LoadedMpi& mpi) {
  return mpi.path + (mpi.version.empty() ? "" : " (" + mpi.version + ")");
}

/// The one MPI of the process.
mpi::LoadedMpi find_mpi() {
  std::vector<mpi::LoadedMpi> found = mpi::loaded_mpis();
  if (found.empty()) {
    mpi::stop_before_mpi("the program called MPI, or mpress, but no loaded library defines MPI");
  }
  if (found.size() > 1) {
    mpi::stop_before_mpi("the program has loaded more than one MPI: " + described(found[0]) +
                         " and " + described(found[1]) +
                         "; build all of its parts with the same MPI");
  }
  return std::move(found[0]);
}

/// Backends lie beside the front.
std::string backend_path(mpi::Family family) {
  Dl_info info;
  std::string path;
  if (::dladdr(reinterpret_cast<void*>(&backend_path), &info) && info.dli_fname) {
    path = info.dli_fname;
  }
  path.resize(path.rfind('/') + 1);  // npos + 1 is 0
  return path + "libmpress_" + mpi::family_name(family) + ".so";
}

struct Opened {
  mpi::LoadedMpi mpi;
  const Backend* backend;
};

Opened open_backend() {
  Opened opened{find_mpi(), nullptr};
  const mpi::LoadedMpi& mpi = opened.mpi;
  if (mpi.family == mpi::Family::unknown) {
    mpi::stop_before_mpi("the program uses " + described(mpi) +
                         ", which is neither of the family of MPICH, nor Open MPI, nor of the MPI "
                         "standard ABI; run it without mpress");
  }
  const std::string path = backend_path(mpi.family);
  // The other front may have loaded it, and from another directory: a process has one.
  const std::string name = path.substr(path.rfind('/') + 1);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    mpi::stop_before_mpi("the program uses " + described(mpi) + ", but " + path +
                         " cannot be loaded: " + ::dlerror() +
                         "; install mpress again with MPICC set to that MPI's compiler wrapper");
  }
  auto* open = reinterpret_cast<OpenBackend*>(::dlsym(library, "mpress_backend"));
  auto* finalize = reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "MPI_Finalize"));
  opened.backend = open ? open(mpi.handle, mpi.path.c_str(), finalize) : nullptr;
  if (!opened.backend || std::strcmp(opened.backend->version, version) != 0 ||
      opened.backend->call_count != call_count ||
      opened.backend->api_call_count != api_call_count) {
    mpi::stop_before_mpi(path +
                         " is of another version of mpress than the library that loads it; "
                         "install mpress again");
  }
  return opened;
}

/// The call that the MPI must have for `name`: some can be made of others (mpi/calls/counted.hpp,
/// mpi/calls/stand_ins.cpp, preload/extensions.cpp).
std::string needed_call(const std::string& name) {
  if (name.rfind("MPI_Request_get_status_", 0) == 0) return "MPI_Request_get_status";
  if (name == "MPI_Message_toint" || name == "MPI_Message_fromint") return "MPI_Mprobe";
  if (name == "MPIX_Request_is_complete" || name == "MPIX_Stream_progress") return "MPI_Test";
  const bool large = name.size() > 2 && name.compare(name.size() - 2, 2, "_c") == 0;
  return large ? name.substr(0, name.size() - 2) : name;
}

const Opened& opened_backend() {
  static const Opened opened = open_backend();
  return opened;
}

}  // namespace

void* find_target(ApiCall call) { return opened_backend().backend->api_calls[call]; }

void* find_target(Call call) {
  const Opened& opened = opened_backend();
  const std::string name = call_names[call];
  if (!::dlsym(opened.mpi.handle, ("P" + needed_call(name)).c_str())) {
    const std::string message =
        "the program called " + name + ", which " + described(opened.mpi) + " does not have";
    opened.backend->stop(message.c_str());
  }
  return opened.backend->calls[call];
}

}  // namespace mpress::front
