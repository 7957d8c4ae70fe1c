#include "memory/kind.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

/// Where the heap ends, as the C library keeps it; null where it has no such name. sbrk(0) is not
/// asked: UCX puts itself in its place, and its one sets the end to what it has just read, which
/// takes memory from a thread that extends the heap at the same time.
extern "C" __attribute__((weak)) void* __curbrk;

namespace mpress::memory {
namespace {

// From the CUDA driver API: cuPointerGetAttributes(count, attributes, results, pointer), which,
// unlike the singular form, reports an unknown (host) pointer as zeros and not as an error.
using PointerGetAttributes = int (*)(unsigned, int*, void**, std::uintptr_t);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr unsigned memory_type_device = 2;

std::atomic<PointerGetAttributes> get_attributes{nullptr};

/// A machine without these device nodes never has a device pointer; asking costs nothing there.
bool machine_has_gpu() {
  static const bool found =
      ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
  return found;
}

/// How many objects the loader has loaded so far.
std::uint64_t loaded_objects() {
  std::uint64_t loaded = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uint64_t*>(result) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

/// The driver may be loaded at any time (a Python program imports its GPU library late), so after
/// a miss it is looked for again once something was loaded: each look takes more than a short
/// message may.
PointerGetAttributes driver() {
  static std::atomic<std::uint64_t> looked_at{0};
  if (PointerGetAttributes found = get_attributes.load(std::memory_order_relaxed)) return found;
  const std::uint64_t loaded = loaded_objects();
  // Another thread may have looked since; what it found is stored before it says that it did.
  if (loaded == looked_at.load(std::memory_order_acquire)) {
    return get_attributes.load(std::memory_order_relaxed);
  }
  PointerGetAttributes found = nullptr;
  if (void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    found = reinterpret_cast<PointerGetAttributes>(::dlsym(library, "cuPointerGetAttributes"));
    get_attributes.store(found, std::memory_order_relaxed);
  }
  looked_at.store(loaded, std::memory_order_release);
  return found;
}

/// What the kernel gives a program when it starts, and the heap behind it, is no device's. Most
/// short messages lie there, and to know that takes a few comparisons.
class OwnMemory {
 public:
  OwnMemory() {
    ::dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* self) {
          static_cast<OwnMemory*>(self)->note(*program);
          return 1;  // the program itself comes first
        },
        this);
    heap_begin_ = heap_begin();
  }

  bool has(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (address - begin_ < end_ - begin_) return true;
    if (heap_begin_ == 0 || address < heap_begin_) return false;
    return address < heap_end();
  }

 private:
  static std::uintptr_t heap_end() {
    if (&__curbrk == nullptr) return 0;
    return reinterpret_cast<std::uintptr_t>(__atomic_load_n(&__curbrk, __ATOMIC_RELAXED));
  }

  void note(const dl_phdr_info& program) {
    for (int i = 0; i < program.dlpi_phnum; ++i) {
      const auto& segment = program.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = program.dlpi_addr + segment.p_vaddr;
      begin_ = begin_ == 0 ? begin : std::min(begin_, begin);
      end_ = std::max(end_, begin + segment.p_memsz);
    }
  }

  /// 0 where the kernel does not tell.
  static std::uintptr_t heap_begin() {
    constexpr int field = 47;  // proc(5): start_brk; the second may hold blanks
    std::ifstream file("/proc/self/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream rest(line.substr(name_end + 1));
    std::string value;
    for (int i = 3; i <= field; ++i) rest >> value;
    return rest ? std::strtoull(value.c_str(), nullptr, 10) : 0;
  }

  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  std::uintptr_t heap_begin_ = 0;
};

struct Attributes {
  unsigned memory_type = 0;
  unsigned managed = 0;
  int device = -1;
};

/// What the driver knows of a pointer; of one that is not its own, the defaults.
Attributes attributes_of(const void* pointer) {
  const PointerGetAttributes query = pointer ? driver() : nullptr;
  if (!query) return {};
  Attributes found;
  int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
  void* results[] = {&found.memory_type, &found.managed, &found.device};
  const int code = query(3, attributes, results, reinterpret_cast<std::uintptr_t>(pointer));
  return code == 0 ? found : Attributes{};
}

}  // namespace

int device_of(const void* pointer) {
  const Attributes found = attributes_of(pointer);
  return found.memory_type == memory_type_device || found.managed ? found.device : -1;
}

int locate(const void* pointer) {
  if (!pointer || !machine_has_gpu()) return -1;
  if (is_own(pointer)) return -1;
  const Attributes found = attributes_of(pointer);
  return found.memory_type == memory_type_device && !found.managed ? found.device : -1;
}

bool is_own(const void* pointer) {
  static const OwnMemory own;
  return own.has(pointer);
}

bool gpu_in_use() { return machine_has_gpu() && driver() != nullptr; }

}  // namespace mpress::memory
