// Data of MPI's types in memory of devices: where it lies, and how it comes to memory that MPI
// takes.
#pragma once

#include <cstddef>

#include "core/devices.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

class Job;

Location locate(Job& job, const void* buffer, const mpi::TypeInfo& type);

inline int device_of(Job& job, const void* buffer, const mpi::TypeInfo& type) {
  return locate(job, buffer, type).device;
}

/// Does MPI get data of such a type that lies on a device packed, and mpress unpacks what comes? Of
/// types with gaps also where MPI takes memory of devices: it copies each run by itself.
bool packs_for_mpi(const Job& job, const mpi::TypeInfo& type);

/// Copies the data of a buffer on a device, packed in the order of its type map, to `packed` in
/// host memory, behind what `behind` names. Returns an MPI error code.
int pack_from_device(Job& job, int device, const void* buffer, MPI_Count count,
                     const mpi::TypeInfo& type, void* packed, std::size_t bytes,
                     const Devices::Behind& behind = nullptr);

/// The opposite, from host memory or from the device's own: the first `bytes` bytes of a buffer's
/// data. What lies between stays untouched.
int unpack_to_device(Job& job, int device, const void* packed, std::size_t bytes, void* buffer,
                     MPI_Count count, const mpi::TypeInfo& type,
                     const Devices::Behind& behind = nullptr);

}  // namespace mpress::engine
