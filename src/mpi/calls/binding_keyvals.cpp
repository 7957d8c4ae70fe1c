#include "mpi/calls/binding_keyvals.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <mutex>
#include <string>

#include "mpi/calls/imports.hpp"

namespace mpress::mpi {
namespace {

/// A binding's function, such as mpi_comm_create_keyval_, MPI_KEYVAL_CREATE or, in C++,
/// MPI::Comm::Create_keyval, and none of C's.
bool is_binding_maker(const std::string& symbol) {
  std::string call(symbol.size(), ' ');
  std::ranges::transform(symbol, call.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool makes = call.find("keyval_create") != std::string::npos ||
                     (call.find("comm") < call.find("create_keyval") &&
                      call.find("create_keyval") != std::string::npos);
  const bool is_in_c =
      symbol.ends_with("MPI_Comm_create_keyval") || symbol.ends_with("MPI_Keyval_create");
  return makes && call.find("mpi") != std::string::npos && !is_in_c;
}

struct Look {
  bool is_found = false;
  unsigned long long loaded = 0;  ///< objects, ever
};

/// The program calls a binding's function, or has a binding linked into it.
int look_at_object(dl_phdr_info* info, std::size_t, void* result) {
  Look& look = *static_cast<Look*>(result);
  const bool is_program = !info->dlpi_name || *info->dlpi_name == '\0';
  look.loaded = info->dlpi_adds;
  for_each_import(*info, [&](const char* name) {
    if (!std::strstr(name, "eyval") && !std::strstr(name, "EYVAL")) return;
    const std::string symbol = name;
    const bool tells_mpi = symbol.find("Keyval_set_proxy") != std::string::npos;
    look.is_found = look.is_found || (is_program && tells_mpi) || is_binding_maker(symbol);
  });
  return look.is_found;
}

int count_loaded(dl_phdr_info* info, std::size_t, void* result) {
  static_cast<Look*>(result)->loaded = info->dlpi_adds;
  return 1;
}

}  // namespace

bool may_bindings_make_keyvals() {
  static std::mutex mutex;
  static Look last;
  const std::lock_guard lock(mutex);
  Look now;
  ::dl_iterate_phdr(count_loaded, &now);
  if (last.is_found || now.loaded == last.loaded) return last.is_found;
  ::dl_iterate_phdr(look_at_object, &now);
  last = now;
  return last.is_found;
}

}  // namespace mpress::mpi
