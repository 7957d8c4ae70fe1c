// libmpress.so: mpress_NAME for every function of src/front/api_calls.hpp. Each passes its
// arguments on, as machine words, to the backend for the program's MPI, which is that of the
// preload library where that is there, too.

#include "config/version.hpp"
#include "front/api_calls.hpp"
#include "front/backends.hpp"
#include "front/words.hpp"

#define MPRESS_FORWARD(name, words)                   \
  MPRESS_TARGET(name, words, find_target(api_##name)) \
  MPRESS_EXPORT(mpress_, name, words)
#define MPRESS_WORDS_AFTER_5(X, name) X(name, 6) X(i##name, 7) X(name##_init, 7)
#define MPRESS_WORDS_AFTER_6(X, name) X(name, 7) X(i##name, 8) X(name##_init, 8)
#define MPRESS_WORDS_AFTER_7(X, name) X(name, 8) X(i##name, 9) X(name##_init, 9)
#define MPRESS_WORDS_AFTER_8(X, name) X(name, 9) X(i##name, 10) X(name##_init, 10)
#define MPRESS_WORDS_AFTER_9(X, name) X(name, 10) X(i##name, 11) X(name##_init, 11)
#define MPRESS_FORWARD_FORMS(name, mpi_name, words) MPRESS_WORDS_AFTER_##words(MPRESS_FORWARD, name)

MPRESS_API_CALLS(MPRESS_FORWARD)
MPRESS_API_COLLECTIVES(MPRESS_FORWARD_FORMS)

extern "C" __attribute__((visibility("default"))) const char* mpress_version() {
  return mpress::version;
}
