// Makes a library that is loaded already call mpress in MPI's place, as those do that were loaded
// behind libmpress_preload.so: its calls of MPI go by a table of addresses (the global offset
// table), which this rewrites. Python's MPI module mostly comes before mpress does, and is called
// so.

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "front/api_calls.hpp"
#include "front/backends.hpp"
#include "mpi/loaded_mpi.hpp"

namespace mpress::front {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t jump_slot = R_X86_64_JUMP_SLOT, global_data = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint64_t jump_slot = R_AARCH64_JUMP_SLOT, global_data = R_AARCH64_GLOB_DAT;
#endif

/// A loaded object, and what its dynamic section tells.
struct Object {
  std::uintptr_t address = 0;  ///< in it: what is looked for
  std::uintptr_t base = 0;
  bool is_found = false;
  std::uintptr_t read_only_begin = 0, read_only_end = 0;  ///< once it was relocated
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * tables[2] = {};
  std::size_t entries[2] = {};
};

void read_dynamic(Object& object, const ElfW(Dyn) * entry) {
  for (; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t pointer = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB: object.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer); break;
      case DT_STRTAB: object.names = reinterpret_cast<const char*>(pointer); break;
      case DT_RELA: object.tables[0] = reinterpret_cast<const ElfW(Rela)*>(pointer); break;
      case DT_RELASZ: object.entries[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_JMPREL: object.tables[1] = reinterpret_cast<const ElfW(Rela)*>(pointer); break;
      case DT_PLTRELSZ: object.entries[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      default: break;
    }
  }
}

int look_at_object(dl_phdr_info* info, std::size_t, void* found) {
  Object& object = *static_cast<Object*>(found);
  const ElfW(Dyn)* dynamic = nullptr;
  bool has_address = false;
  Object here = object;
  here.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      has_address =
          has_address || (object.address >= begin && object.address < begin + part.p_memsz);
    } else if (part.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    } else if (part.p_type == PT_GNU_RELRO) {
      here.read_only_begin = begin;
      here.read_only_end = begin + part.p_memsz;
    }
  }
  if (!has_address || !dynamic) return 0;
  read_dynamic(here, dynamic);
  here.is_found = here.symbols && here.names;
  object = here;
  return 1;
}

/// Of `front`, which stands in for MPI, and of no library that it uses.
void* stand_in_of(void* front, const std::string& path, const char* name) {
  const char* const own_name = *name == 'P' ? name + 1 : name;
  if (std::strncmp(own_name, "MPI_", 4) != 0 && std::strncmp(own_name, "MPIX_", 5) != 0) {
    return nullptr;
  }
  void* const symbol = ::dlsym(front, name);
  Dl_info info;
  const bool is_own = symbol && ::dladdr(symbol, &info) && info.dli_fname == path;
  return is_own ? symbol : nullptr;
}

/// Writes an entry of the table, where that may be written, or is made so for the moment.
bool write_entry(const Object& object, void** entry, void* value) {
  const auto address = reinterpret_cast<std::uintptr_t>(entry);
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const begin = reinterpret_cast<void*>(address / page * page);
  const bool is_read_only = address >= object.read_only_begin && address < object.read_only_end;
  if (is_read_only && ::mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref<void*>(*entry).store(value, std::memory_order_release);
  // The table begins where a page may hold what stays writable.
  const bool is_all = object.read_only_begin <= reinterpret_cast<std::uintptr_t>(begin) &&
                      object.read_only_end >= reinterpret_cast<std::uintptr_t>(begin) + page;
  if (is_read_only && is_all) ::mprotect(begin, page, PROT_READ);
  return true;
}

}  // namespace
}  // namespace mpress::front

using namespace mpress::front;

/// Makes the loaded object that `address` lies in call mpress. Returns how many of its calls do
/// now, of those that did not; below 0: it cannot be done. For Python's binding; not in the public
/// header.
extern "C" __attribute__((visibility("default"))) int mpress_interpose(const void* address) {
#if defined(__x86_64__) || defined(__aarch64__)
  Object object;
  object.address = reinterpret_cast<std::uintptr_t>(address);
  ::dl_iterate_phdr(look_at_object, &object);
  if (!object.is_found) return -1;
  Dl_info own;
  if (!::dladdr(reinterpret_cast<void*>(&mpress_interpose), &own) || !own.dli_fname) return -1;
  std::string path = own.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libmpress_preload.so";
  void* const front = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!front) return -1;
  // As the loader calls it, which may be another name of the same file.
  Dl_info loaded;
  if (!::dladdr(::dlsym(front, "MPI_Init"), &loaded) || !loaded.dli_fname) return -1;
  path = loaded.dli_fname;
  int changed = 0;
  for (int table = 0; table < 2; ++table) {
    for (std::size_t i = 0; i < object.entries[table]; ++i) {
      const ElfW(Rela)& relocation = object.tables[table][i];
      const std::uint64_t kind = ELF64_R_TYPE(relocation.r_info);
      if (kind != jump_slot && kind != global_data) continue;
      const char* const name =
          object.names + object.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
      void* const stand_in = stand_in_of(front, path, name);
      auto** const entry = reinterpret_cast<void**>(object.base + relocation.r_offset);
      if (!stand_in || *entry == stand_in) continue;
      if (!write_entry(object, entry, stand_in)) return -1;
      ++changed;
    }
  }
  if (changed > 0) reinterpret_cast<int (*)()>(find_target(api_stand_in))();
  return changed;
#else
  (void)address;
  return -1;
#endif
}
