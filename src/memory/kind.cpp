#include "memory/kind.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace mpress::memory {
namespace {

// From the CUDA driver API: cuPointerGetAttributes(count, attributes, results, pointer), which,
// unlike the singular form, reports an unknown (host) pointer as zeros and not as an error.
using PointerGetAttributes = int (*)(unsigned, int*, void**, std::uintptr_t);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr unsigned memory_type_device = 2;

std::atomic<PointerGetAttributes> get_attributes{nullptr};

/// A machine without these device nodes never has a device pointer; asking costs nothing there.
bool machine_has_gpu() {
  static const bool found =
      ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
  return found;
}

/// The driver may be loaded at any time (a Python program imports its GPU library late), so a
/// miss is asked again, at the price of one look at the loader's list.
PointerGetAttributes driver() {
  if (PointerGetAttributes found = get_attributes.load(std::memory_order_relaxed)) return found;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  auto found = reinterpret_cast<PointerGetAttributes>(::dlsym(library, "cuPointerGetAttributes"));
  get_attributes.store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace

Kind kind_of(const void* pointer) {
  const PointerGetAttributes query = pointer && machine_has_gpu() ? driver() : nullptr;
  if (!query) return Kind::host;
  unsigned type = 0;
  unsigned managed = 0;
  int attributes[] = {attribute_memory_type, attribute_is_managed};
  void* results[] = {&type, &managed};
  const int code = query(2, attributes, results, reinterpret_cast<std::uintptr_t>(pointer));
  return code == 0 && type == memory_type_device && !managed ? Kind::device : Kind::host;
}

}  // namespace mpress::memory
