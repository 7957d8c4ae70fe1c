// The process's GPUs: found when the program passes memory of one.
#pragma once

#include <string>

#include "gpu/gpu.hpp"

namespace mpress::gpu {

/// Which library serves memory of devices: "cuda" (libmpress_cuda.so beside mpress's other
/// libraries), "off" (device memory is left to MPI), or the path of another. To be called before
/// any other function, once.
void choose(const std::string& library);

/// The device whose memory `pointer` points to, or `host`. Asks the CUDA driver, but only where the
/// process itself has loaded it: mpress never brings a driver into a program that uses none. Needs
/// no library of mpress's.
int locate(const void* pointer);

/// May any memory be a device's? Costs a few nanoseconds where the process uses no GPU.
bool in_use();

/// May this process ever come to use one? No, where the machine has no driver.
bool may_come();

/// The library, loaded at the first call; null where there is none, and then `why_not()` says why.
Gpu* gpu();
const std::string& why_not();

}  // namespace mpress::gpu
