// Kernels that pack and unpack the runs of a scattered message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/cuda/tell.hpp"
#include "gpu/queue.hpp"

namespace mpress::gpu {

/// A run as kernels read it: where it lies in the buffer, and in what is packed.
struct PlacedRun {
  std::int64_t offset;
  std::uint64_t packed_at;
};

enum class Direction : std::uint8_t { gather, scatter };

/// Copies between `buffer` and `packed`, on the current device.
cudaError_t copy_runs(Direction direction, void* buffer, void* packed, const RegularRuns& runs,
                      cudaStream_t stream);

/// The same for any runs: `placed`, in device memory, has one entry more than there are runs, whose
/// packed_at is the sum of all.
cudaError_t copy_runs(Direction direction, void* buffer, void* packed, const PlacedRun* placed,
                      std::uint32_t count, std::uint64_t total, cudaStream_t stream);

/// Copies memory that the current device reaches, 1 to Queue::most_copies places.
cudaError_t copy_and_tell(std::span<const Copy> copies, const Tell& tell, cudaStream_t stream);

/// Tells the host that all work before is done, where the driver cannot.
cudaError_t write_flag(std::uint32_t* flag, std::uint32_t value, cudaStream_t stream);

}  // namespace mpress::gpu
