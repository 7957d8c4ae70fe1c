// Which symbols a loaded object asks others for: those that its relocations name.
#pragma once

#include <link.h>

#include <cstddef>

namespace mpress::mpi {

/// `info` is from dl_iterate_phdr; `visit(name)` may see a name more than once.
template <typename Visit>
void for_each_import(const dl_phdr_info& info, Visit visit) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + segment.p_vaddr);
  }
  if (!dynamic) return;
  // The loader has made most of these addresses absolute, but not those of every object.
  const auto address = [&info](ElfW(Addr) value) {
    return value < info.dlpi_addr ? value + info.dlpi_addr : value;
  };
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  struct Table {
    const ElfW(Rela) * begin = nullptr;
    std::size_t bytes = 0;
  } data, calls;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB: symbols = reinterpret_cast<const ElfW(Sym)*>(address(value)); break;
      case DT_STRTAB: names = reinterpret_cast<const char*>(address(value)); break;
      case DT_RELA: data.begin = reinterpret_cast<const ElfW(Rela)*>(address(value)); break;
      case DT_RELASZ: data.bytes = value; break;
      case DT_JMPREL: calls.begin = reinterpret_cast<const ElfW(Rela)*>(address(value)); break;
      case DT_PLTRELSZ: calls.bytes = value; break;
      default: break;
    }
  }
  if (!symbols || !names) return;
  for (const Table& table : {data, calls}) {
    for (std::size_t i = 0; table.begin && i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const auto symbol = ELF64_R_SYM(table.begin[i].r_info);
      if (symbol != 0) visit(names + symbols[symbol].st_name);
    }
  }
}

}  // namespace mpress::mpi
