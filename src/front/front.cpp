// libmpress_preload.so: MPI_NAME and PMPI_NAME for every call that mpress stands in for. Each
// passes its arguments on, as machine words, to the backend for the program's MPI, which is found
// at the first call: until then nothing happens, so that the library is harmless in a shell.
//
// PMPI_NAME too, so that a profiler loaded above, which defines some MPI_NAME and calls PMPI_NAME,
// sees the program's own calls with mpress at work beneath it; so that one which defines only some
// calls does not make the others pass mpress by; and for Fortran bindings that call PMPI_NAME.

#include "front/backends.hpp"
#include "front/words.hpp"

#define MPRESS_FORWARD(name, words)                    \
  MPRESS_TARGET(name, words, find_target(call_##name)) \
  MPRESS_EXPORT(MPI_, name, words)                     \
  MPRESS_EXPORT(PMPI_, name, words)
#define MPRESS_FORWARD_EXTENSION(name, words)          \
  MPRESS_TARGET(name, words, find_target(call_##name)) \
  MPRESS_EXPORT(MPIX_, name, words)                    \
  MPRESS_EXPORT(PMPIX_, name, words)
#define MPRESS_FORWARD_BOTH(name, words) \
  MPRESS_FORWARD(name, words)            \
  MPRESS_FORWARD(name##_c, words)

MPRESS_OTHER_CALLS(MPRESS_FORWARD)
MPRESS_EXTENSION_CALLS(MPRESS_FORWARD_EXTENSION)
MPRESS_COUNTED_CALLS(MPRESS_FORWARD_BOTH)
MPRESS_STAGED_CALLS(MPRESS_FORWARD_BOTH)
MPRESS_CHECKED_CALLS(MPRESS_FORWARD_BOTH)
MPRESS_CHECKED_CALLS_OF_ONE_FORM(MPRESS_FORWARD)
MPRESS_BLOCKING_CALLS(MPRESS_FORWARD)
MPRESS_CALLS_PASSED_BY(MPRESS_FORWARD)
