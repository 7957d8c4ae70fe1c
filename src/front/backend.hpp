// What the front asks of a backend: mpress compiled for one MPI, as libmpress_FAMILY.so. A backend
// shows one symbol, mpress_backend.
#pragma once

#include <cstddef>

namespace mpress::front {

struct Backend {
  const char* version;                ///< of mpress; the front takes no other than its own
  std::size_t call_count;             ///< entries of `calls`, in the order of the enum Call
  void* const* calls;                 ///< functions with the signatures that MPI gives them
  std::size_t api_call_count;         ///< the same of the enum ApiCall
  void* const* api_calls;             ///< with those of include/mpress/mpress.h
  void (*stop)(const char* message);  ///< ends the job with a message; does not return
};

/// The type of mpress_backend. Each front calls it once, before any entry of the tables: `library`
/// is what dlopen gave for the program's MPI, `path` its file. `finalize`: the MPI_Finalize that
/// the dynamic linker has behind the front's, which may be a tool's that reports there; or null.
using OpenBackend = const Backend*(void* library, const char* path, int (*finalize)());

}  // namespace mpress::front
