#include "mpi/calls/fortran_calls.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "front/calls.hpp"
#include "mpi/calls/imports.hpp"
#include "mpi/loaded_mpi.hpp"

namespace mpress::mpi {
namespace {

/// A loaded file and what it asks others for.
struct Object {
  std::string path;  ///< empty: the program itself
  ElfW(Addr) base = 0;
  std::set<std::string> c_calls;                     ///< "wait" for MPI_Wait or PMPI_Wait
  std::map<std::string, std::string> fortran_calls;  ///< "wait" -> "mpi_wait_"
};

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// The calls that mpress stands in for, in lower case.
const std::set<std::string>& known_calls() {
  static constexpr const char* names[] = {
#define MPRESS_NAME(name, words) #name,
#define MPRESS_NAME_BOTH(name, words) #name, #name "_c",
      MPRESS_OTHER_CALLS(MPRESS_NAME) MPRESS_COUNTED_CALLS(MPRESS_NAME_BOTH)
#undef MPRESS_NAME
#undef MPRESS_NAME_BOTH
  };
  static const auto known = [] {
    std::set<std::string> calls;
    for (const char* name : names) calls.insert(lower_case(name));
    return calls;
  }();
  return known;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The call that a symbol is an entry of, in lower case; empty where it is none of mpress's. In
/// C's names both cases occur; compilers write Fortran's in one, with or without underscores.
std::string call_of(std::string_view symbol, bool& fortran) {
  if (!symbol.empty() && (symbol[0] == 'P' || symbol[0] == 'p')) symbol.remove_prefix(1);
  if (symbol.substr(0, 4) != "MPI_" && symbol.substr(0, 4) != "mpi_") return {};
  const bool capitals = symbol[0] == 'M';
  symbol.remove_prefix(4);
  const auto is_lower = [](unsigned char c) { return std::islower(c) != 0; };
  fortran = !capitals || std::none_of(symbol.begin(), symbol.end(), is_lower);
  std::string call = lower_case(symbol);
  if (fortran) {
    while (ends_with(call, "_")) call.pop_back();
    for (const char* suffix : {"_large", "_f08ts", "_f08"}) {
      if (ends_with(call, suffix)) call.resize(call.size() - std::string_view(suffix).size());
    }
  }
  return known_calls().count(call) ? call : std::string();
}

void note_import(Object& object, const char* symbol) {
  if (symbol[0] != 'M' && symbol[0] != 'm' && symbol[0] != 'P' && symbol[0] != 'p') return;
  bool fortran = false;
  std::string call = call_of(symbol, fortran);
  if (call.empty()) return;
  if (fortran) {
    object.fortran_calls.emplace(std::move(call), symbol);
  } else {
    object.c_calls.insert(std::move(call));
  }
}

int read_object(dl_phdr_info* info, std::size_t, void* objects) {
  Object object;
  object.path = info->dlpi_name;
  object.base = info->dlpi_addr;
  for_each_import(*info, [&](const char* symbol) { note_import(object, symbol); });
  if (!object.c_calls.empty() || !object.fortran_calls.empty()) {
    static_cast<std::vector<Object>*>(objects)->push_back(std::move(object));
  }
  return 0;
}

/// A symbol as the object's own look-ups find it: in the object, in what it depends on.
void* look_up(const Object& object, const std::string& symbol) {
  void* handle =
      ::dlopen(object.path.empty() ? nullptr : object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return nullptr;
  void* found = ::dlsym(handle, symbol.c_str());
  ::dlclose(handle);
  return found;
}

/// Whether the object itself defines a symbol, and not something that it depends on.
bool defines(const Object& object, const std::string& symbol) {
  return is_defined_by(look_up(object, symbol), object.base);
}

/// A program may have a function of its own called mpi_wait_. A binding has all of MPI's.
bool is_of_a_binding(const Object& caller, const std::string& call, const std::string& symbol) {
  if (symbol.find("_f08") != std::string::npos) return true;
  const std::size_t capitals = symbol.find("MPI_");
  const bool small = capitals == std::string::npos;
  std::string other = symbol;
  other.replace((small ? symbol.find("mpi_") : capitals) + 4, call.size(),
                small ? "comm_rank" : "COMM_RANK");
  return look_up(caller, other) || ::dlsym(RTLD_DEFAULT, other.c_str());
}

/// Whether the object is a binding that passes the call on to C where mpress sees it. MPI's C
/// library may hold Fortran's entries too; what those call inside it cannot be told.
bool passes_on(const Object& object, const std::string& call, const std::string& symbol) {
  if (!object.c_calls.count(call) || defines(object, "PMPI_Get_library_version")) return false;
  // A binding may stand on another, as mpi_f08 does on mpif.h's in Open MPI.
  for (const std::string& name :
       {symbol, "mpi_" + call + "_", "mpi_" + call, "mpi_" + call + "__"}) {
    if (defines(object, name)) return true;
  }
  return false;
}

}  // namespace

std::string unseen_fortran_call() {
  std::vector<Object> objects;
  ::dl_iterate_phdr(read_object, &objects);
  for (const Object& caller : objects) {
    for (const auto& [call, symbol] : caller.fortran_calls) {
      if (!is_of_a_binding(caller, call, symbol)) continue;
      const bool seen = std::any_of(objects.begin(), objects.end(), [&](const Object& object) {
        return passes_on(object, call, symbol);
      });
      if (!seen) return symbol;
    }
  }
  return {};
}

}  // namespace mpress::mpi
