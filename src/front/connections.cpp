// How many of a process's streams a GPU may look at at a time. CUDA reads it when it starts: before
// MPI_Init in many programs, so it is told as soon as the library is there.
//
// Streams share connections. Where those that CUDA has by default are taken by streams of the
// program's that wait for another rank (a reduction of NCCL's, with work behind it), mpress's
// copies and kernels do not begin either, although no stream waits for another, and the message
// that this rank would be waited for with never leaves. More than 16 take long to open, and all
// launches a little longer (docs/dev/performance-notes.md).

#include <cstdlib>
#include <cstring>

namespace {

__attribute__((constructor)) void ask_for_connections() {
  const char* disabled = std::getenv("MPRESS_DISABLE");
  if (disabled && std::strcmp(disabled, "1") == 0) return;
  constexpr int keep = 0;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", keep);
}

}  // namespace
