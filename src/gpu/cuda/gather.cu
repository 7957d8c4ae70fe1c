#include <algorithm>

#include "codec/cuda/support.cuh"
#include "gpu/cuda/gather.hpp"
#include "gpu/cuda/tell.cuh"

namespace mpress::gpu {
namespace {

/// A run, or what a tile has of one.
struct Piece {
  std::int64_t offset;
  std::uint64_t packed_at;
  std::uint64_t bytes;
};

struct Listed {
  const PlacedRun* runs;
  std::uint32_t count;

  __device__ std::uint32_t find(std::uint64_t packed_at) const {
    std::uint32_t low = 0;
    for (std::uint32_t high = count; high - low > 1;) {
      const std::uint32_t middle = low + (high - low) / 2;
      (runs[middle].packed_at <= packed_at ? low : high) = middle;
    }
    return low;
  }
  __device__ Piece at(std::uint32_t i) const {
    const PlacedRun run = runs[i];
    return {run.offset, run.packed_at, runs[i + 1].packed_at - run.packed_at};
  }
};

struct Regular : RegularRuns {
  __device__ std::uint32_t find(std::uint64_t packed_at) const {
    return static_cast<std::uint32_t>(packed_at / bytes);
  }
  __device__ Piece at(std::uint32_t i) const {
    return {first + i % inner * stride + i / inner * outer, i * bytes, bytes};
  }
};

/// Copies by `workers` threads with accesses of sizeof(Unit) bytes, to which both addresses stand
/// alike; byte by byte before and behind.
template <class Unit>
__device__ void copy_units(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                           unsigned worker, unsigned workers) {
  constexpr std::uint64_t size = sizeof(Unit);
  const std::uint64_t head =
      min(bytes, (size - reinterpret_cast<std::uintptr_t>(to) % size) % size);
  const std::uint64_t units = (bytes - head) / size;
  for (std::uint64_t i = worker; i < head; i += workers) to[i] = from[i];
  const auto* in = reinterpret_cast<const Unit*>(from + head);
  auto* out = reinterpret_cast<Unit*>(to + head);
#pragma unroll 4
  for (std::uint64_t i = worker; i < units; i += workers) out[i] = __ldcs(in + i);
  for (std::uint64_t i = head + units * size + worker; i < bytes; i += workers) to[i] = from[i];
}

__device__ void copy_piece(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                           unsigned worker, unsigned workers) {
  const auto apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  if (apart % 16 == 0) {
    copy_units<uint4>(to, from, bytes, worker, workers);
  } else if (apart % 8 == 0) {
    copy_units<uint2>(to, from, bytes, worker, workers);
  } else if (apart % 4 == 0) {
    copy_units<unsigned>(to, from, bytes, worker, workers);
  } else {
    copy_units<unsigned char>(to, from, bytes, worker, workers);
  }
}

/// Up to this many bytes of a run are one thread's work, so that a warp copies 32 of them at once.
constexpr std::uint64_t short_run = 64;
constexpr unsigned threads = 128;

/// A warp copies `tile` bytes of what is packed, whatever runs they are of.
template <class Runs, Direction direction>
__global__ void __launch_bounds__(threads)
    copy_tiles(const Runs runs, unsigned char* buffer, unsigned char* packed, std::uint64_t total,
               std::uint32_t tile) {
  const std::uint64_t warp = (std::uint64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  const unsigned queue = threadIdx.x % 32;
  const std::uint64_t begin = warp * tile;
  if (begin >= total) return;
  const std::uint64_t end = min(begin + tile, total);
  const auto copy = [&](std::uint64_t in_buffer, std::uint64_t in_packed, std::uint64_t bytes,
                        unsigned worker, unsigned workers) {
    auto* const scattered = reinterpret_cast<unsigned char*>(in_buffer);
    auto* const contiguous = reinterpret_cast<unsigned char*>(in_packed);
    if constexpr (direction == Direction::gather) {
      copy_piece(contiguous, scattered, bytes, worker, workers);
    } else {
      copy_piece(scattered, contiguous, bytes, worker, workers);
    }
  };
  bool more = true;
  for (std::uint64_t first = runs.find(begin); more; first += 32) {
    std::uint64_t in_buffer = 0, in_packed = 0, bytes = 0;
    bool mine = false;
    if (first + queue < runs.count) {
      const Piece run = runs.at(static_cast<std::uint32_t>(first + queue));
      const std::uint64_t from = max(run.packed_at, begin);
      const std::uint64_t to = min(run.packed_at + run.bytes, end);
      mine = run.packed_at < end;
      if (mine && from < to) {
        bytes = to - from;
        in_packed = reinterpret_cast<std::uint64_t>(packed) + from;
        in_buffer = reinterpret_cast<std::uint64_t>(buffer) +
                    static_cast<std::uint64_t>(run.offset) + (from - run.packed_at);
      }
    }
    if (bytes > 0 && bytes <= short_run) copy(in_buffer, in_packed, bytes, 0, 1);
    for (unsigned left = __ballot_sync(~0u, bytes > short_run); left != 0; left &= left - 1) {
      const int owner = __ffs(left) - 1;
      copy(__shfl_sync(~0u, in_buffer, owner), __shfl_sync(~0u, in_packed, owner),
           __shfl_sync(~0u, bytes, owner), queue, 32);
    }
    more = __all_sync(~0u, mine);
  }
}

template <class Runs>
cudaError_t launch(Direction direction, void* buffer, void* packed, const Runs& runs,
                   std::uint64_t total, cudaStream_t stream) {
  // As small as keeps the device busy with a short message; a long one needs no more searches.
  const std::uint64_t warps = std::uint64_t{codec::cuda::multiprocessors()} * 32;
  const std::uint64_t tile = std::clamp<std::uint64_t>(total / warps / 512 * 512, 512, 8192);
  const std::uint64_t blocks = ((total + tile - 1) / tile * 32 + threads - 1) / threads;
  const auto kernel = direction == Direction::gather ? copy_tiles<Runs, Direction::gather>
                                                     : copy_tiles<Runs, Direction::scatter>;
  kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
      runs, static_cast<unsigned char*>(buffer), static_cast<unsigned char*>(packed), total,
      static_cast<std::uint32_t>(tile));
  return cudaGetLastError();
}

template <unsigned capacity>
struct Copies {
  Copy at[capacity];
};

/// Each row of the grid has a copy.
template <unsigned capacity>
__global__ void __launch_bounds__(threads)
    copy_then_tell(const __grid_constant__ Copies<capacity> copies, const Tell tell) {
  const Copy& copy = copies.at[blockIdx.y];
  copy_piece(static_cast<unsigned char*>(copy.to), static_cast<const unsigned char*>(copy.from),
             copy.bytes, blockIdx.x * threads + threadIdx.x, gridDim.x * threads);
  tell_if_last(tell, gridDim.x * gridDim.y);
}

template <unsigned capacity>
void launch_copies(std::span<const Copy> copies, const Tell& tell, cudaStream_t stream) {
  constexpr std::uint64_t in_block = threads * 16;  // an access of each thread
  Copies<capacity> all;
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    all.at[i] = copies[i];
    longest = std::max<std::uint64_t>(longest, copies[i].bytes);
  }
  const std::uint64_t most = std::uint64_t{codec::cuda::multiprocessors()} * 16 / copies.size() + 1;
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>((longest + in_block - 1) / in_block, 1, most);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(copies.size()));
  copy_then_tell<capacity><<<grid, threads, 0, stream>>>(all, tell);
}

__global__ void set_flag(volatile std::uint32_t* flag, std::uint32_t value) {
  __threadfence_system();
  *flag = value;
}

}  // namespace

cudaError_t copy_runs(Direction direction, void* buffer, void* packed, const RegularRuns& runs,
                      cudaStream_t stream) {
  return launch(direction, buffer, packed, Regular{runs}, runs.bytes * runs.count, stream);
}

cudaError_t copy_runs(Direction direction, void* buffer, void* packed, const PlacedRun* placed,
                      std::uint32_t count, std::uint64_t total, cudaStream_t stream) {
  return launch(direction, buffer, packed, Listed{placed, count}, total, stream);
}

cudaError_t copy_and_tell(std::span<const Copy> copies, const Tell& tell, cudaStream_t stream) {
  if (copies.empty() || copies.size() > Queue::most_copies) return cudaErrorInvalidValue;
  const auto launch = copies.size() == 1 ? launch_copies<1> : launch_copies<Queue::most_copies>;
  launch(copies, tell, stream);
  return cudaGetLastError();
}

cudaError_t write_flag(std::uint32_t* flag, std::uint32_t value, cudaStream_t stream) {
  set_flag<<<1, 1, 0, stream>>>(flag, value);
  return cudaGetLastError();
}

}  // namespace mpress::gpu
