// Where a buffer lives.
#pragma once

namespace mpress::memory {

enum class Kind : unsigned char { host, device };

/// Host or device? Asks the CUDA driver, but only where the process itself has loaded it:
/// mpress never brings a driver into a program that uses none. Managed and pinned memory count
/// as host memory, since the CPU may touch them.
Kind kind_of(const void* pointer);

/// The device that a pointer to device or managed memory belongs to, as CUDA counts devices, -1 for
/// any other pointer. Asks the driver like kind_of(), so that no device gets a context by it.
int device_of(const void* pointer);

}  // namespace mpress::memory
