// The library exports MPI_* and nothing else.
#pragma once

#define MPRESS_EXPORT extern "C" __attribute__((visibility("default")))
