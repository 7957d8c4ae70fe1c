#include "gpu/loaded_gpu.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "memory/kind.hpp"

namespace mpress::gpu {
namespace {

enum class Kind { cuda, off, named };
Kind kind = Kind::cuda;

struct Loaded {
  Gpu* gpu = nullptr;
  std::string path;
  std::string why_not;
};

/// Never destroyed: a process may end while other threads still send.
Loaded& loaded() {
  static auto* const immortal = new Loaded;
  return *immortal;
}

/// libmpress_cuda.so lies beside the library that this is part of.
std::string path_beside() {
  Dl_info info;
  std::string path;
  if (::dladdr(reinterpret_cast<void*>(&path_beside), &info) && info.dli_fname) {
    path = info.dli_fname;
  }
  path.resize(path.rfind('/') + 1);  // npos + 1 is 0
  return path + "libmpress_cuda.so";
}

void load(Loaded& result) {
  if (kind == Kind::off) {
    result.why_not = "GPUs are switched off";
    return;
  }
  if (kind == Kind::cuda) result.path = path_beside();
  void* library = ::dlopen(result.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* error = ::dlerror();
    result.why_not = error ? error : result.path + " cannot be loaded";
    return;
  }
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, entry_name));
  Gpu* found = entry ? entry() : nullptr;
  if (!entry) {
    result.why_not = result.path + " is no library for GPUs: it has no " + entry_name;
  } else if (!found) {
    result.why_not = result.path + " found no GPU that it can use";
  } else if (found->version() != interface_version) {
    result.why_not = result.path + " is of another version of mpress";
  } else {
    result.gpu = found;
  }
}

}  // namespace

void choose(const std::string& library) {
  if (library.find('/') != std::string::npos) {
    kind = Kind::named;
    loaded().path = library;
    gpu();
  } else {
    kind = library == "off" ? Kind::off : Kind::cuda;
  }
}

int locate(const void* pointer) {
  if (kind != Kind::named) return memory::locate(pointer);
  const Gpu* const named = gpu();
  return named ? named->locate(pointer) : host;
}

bool in_use() { return kind == Kind::named ? gpu() != nullptr : memory::gpu_in_use(); }

bool may_come() {
  // Of the driver itself, under Windows, and on Tegra.
  constexpr const char* devices[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu"};
  if (in_use()) return true;
  return kind == Kind::cuda && std::any_of(std::begin(devices), std::end(devices),
                                           [](const char* d) { return ::access(d, F_OK) == 0; });
}

Gpu* gpu() {
  // A function's static is made once, whatever the number of threads.
  static Gpu* const found = [] {
    try {
      load(loaded());
    } catch (const std::bad_alloc&) {
      loaded().why_not = "memory ran out";  // short enough to take none
    }
    return loaded().gpu;
  }();
  return found;
}

const std::string& why_not() { return loaded().why_not; }

}  // namespace mpress::gpu
