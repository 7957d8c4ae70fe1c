// A backend's table of calls: mpress compiled for one MPI, as the front takes it.

#include "front/backend.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <type_traits>

#include "api/entries.hpp"
#include "config/version.hpp"
#include "front/calls.hpp"
#include "mpi/calls/calls.hpp"
#include "preload/blocking_calls.hpp"
#include "preload/buffer_calls.hpp"
#include "preload/checked_calls.hpp"
#include "preload/export.hpp"
#include "preload/program_calls.hpp"

using namespace mpress;

// Headers may be older than the call; PMPI_NAME is always declared.
#define MPRESS_DECLARE(name, words) extern "C" decltype(PMPI_##name) MPI_##name;
#define MPRESS_DECLARE_BOTH(name, words) MPRESS_DECLARE(name, words) MPRESS_DECLARE(name##_c, words)
MPRESS_OTHER_CALLS(MPRESS_DECLARE)
MPRESS_COUNTED_CALLS(MPRESS_DECLARE_BOTH)
MPRESS_CALLS_PASSED_BY(MPRESS_DECLARE)
#define MPRESS_DECLARE_EXTENSION(name, words) extern "C" decltype(PMPIX_##name) MPIX_##name;
MPRESS_EXTENSION_CALLS(MPRESS_DECLARE_EXTENSION)

namespace {

/// The front passes on words: every argument must fit one, and all must be passed.
template <std::size_t words, typename Result, typename... Arguments>
void* target(Result (*function)(Arguments...)) {
  static_assert(sizeof...(Arguments) == words, "src/front/calls.hpp has another number");
  static_assert(((std::is_integral_v<Arguments> || std::is_pointer_v<Arguments>) && ...));
  static_assert(std::is_integral_v<Result> || std::is_pointer_v<Result>);
  return reinterpret_cast<void*>(function);
}

void* targets[front::call_count];

void find_targets() {
  void* const found[front::call_count] = {
#define MPRESS_OWN(name, words) target<words>(&MPI_##name),
#define MPRESS_OWN_BOTH(name, words) MPRESS_OWN(name, words) MPRESS_OWN(name##_c, words)
#define MPRESS_OWN_EXTENSION(name, words) target<words>(&MPIX_##name),
      MPRESS_OTHER_CALLS(MPRESS_OWN) MPRESS_EXTENSION_CALLS(MPRESS_OWN_EXTENSION)
          MPRESS_COUNTED_CALLS(MPRESS_OWN_BOTH)
#undef MPRESS_OWN_EXTENSION
#undef MPRESS_OWN
#define MPRESS_OWN(name, words) target<words>(preload::staged_calls.name),
              MPRESS_STAGED_CALLS(MPRESS_OWN_BOTH)
#undef MPRESS_OWN
#define MPRESS_OWN(name, words) target<words>(preload::host_only_calls.name),
                  MPRESS_CHECKED_CALLS(MPRESS_OWN_BOTH) MPRESS_CHECKED_CALLS_OF_ONE_FORM(MPRESS_OWN)
#undef MPRESS_OWN
#define MPRESS_OWN(name, words) target<words>(preload::watched_calls.name),
                      MPRESS_BLOCKING_CALLS(MPRESS_OWN)
#undef MPRESS_OWN
#define MPRESS_OWN(name, words) target<words>(&MPI_##name),
                          MPRESS_CALLS_PASSED_BY(MPRESS_OWN)
#undef MPRESS_OWN
#undef MPRESS_OWN_BOTH
  };
  std::copy_n(found, front::call_count, targets);
}

void stop(const char* message) { mpi::fatal(message); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const front::Backend* mpress_backend(
    void* library, const char* path, int (*finalize)()) {
  static std::once_flag once;  // there may be two fronts
  std::call_once(once, [&] {
    mpi::bind(library, path);
    preload::finalize_behind = finalize;
    find_targets();
  });
#define MPRESS_ENTRY(name, words) preload::entry<targets, front::call_##name, words>(),
#define MPRESS_ENTRY_BOTH(name, words) MPRESS_ENTRY(name, words) MPRESS_ENTRY(name##_c, words)
  static void* const calls[front::call_count] = {
      MPRESS_OTHER_CALLS(MPRESS_ENTRY) MPRESS_EXTENSION_CALLS(MPRESS_ENTRY)
          MPRESS_COUNTED_CALLS(MPRESS_ENTRY_BOTH) MPRESS_STAGED_CALLS(MPRESS_ENTRY_BOTH)
              MPRESS_CHECKED_CALLS(MPRESS_ENTRY_BOTH) MPRESS_CHECKED_CALLS_OF_ONE_FORM(MPRESS_ENTRY)
                  MPRESS_BLOCKING_CALLS(MPRESS_ENTRY) MPRESS_CALLS_PASSED_BY(MPRESS_ENTRY)};
#undef MPRESS_ENTRY
#undef MPRESS_ENTRY_BOTH
#define MPRESS_ENTRY(name, words) preload::entry<api::targets, front::api_##name, words>(),
#define MPRESS_ENTRIES(name, mpi_name, words) \
  MPRESS_ENTRY(name, words + 1)               \
  MPRESS_ENTRY(i##name, words + 2) MPRESS_ENTRY(name##_init, words + 2)
  static void* const api_calls[front::api_call_count] = {
      MPRESS_API_CALLS(MPRESS_ENTRY) MPRESS_API_COLLECTIVES(MPRESS_ENTRIES)};
#undef MPRESS_ENTRY
#undef MPRESS_ENTRIES
  static const front::Backend backend{
      version, front::call_count, calls, front::api_call_count, api_calls, stop};
  return &backend;
}
