// Whose memory a pointer points to.
#pragma once

namespace mpress::memory {

// All ask the CUDA driver, but only where the process itself has loaded it: mpress never brings a
// driver into a program that uses none, and no device gets a context by a question.

/// The device, as CUDA counts devices, that a pointer to device or managed memory belongs to; -1
/// for any other pointer.
int device_of(const void* pointer);

/// The same for memory that the CPU cannot touch: -1 for managed memory, too. Costs next to nothing
/// on a machine without a GPU.
int locate(const void* pointer);

/// May some pointer be one to such memory? Costs next to nothing where the process uses no GPU.
bool gpu_in_use();

/// Is this the program's own code or data, or its heap (brk)? Asks nobody; false tells nothing.
bool is_own(const void* pointer);

}  // namespace mpress::memory
