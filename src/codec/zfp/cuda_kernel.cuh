// What the kernels of zfp's CUDA twin share: how segments are cut into tasks and tasks spread over
// thread blocks.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <bit>

#include "codec/cuda/support.cuh"
#include "codec/zfp/format.hpp"
#include "codec/zfp/cuda.hpp"
#include "codec/zfp/cuda_block.cuh"

namespace mpress::codec::zfp::cuda {

inline constexpr unsigned threads = 256;
inline constexpr unsigned warps = threads / 32;

/// A unit is the 32 blocks of a warp, `block_bits` words of 32 bits of the stream; a chunk is a run
/// of units for each warp of a thread block; a task is a run of chunks, one in most launches.
template <typename Element>
inline constexpr unsigned units_per_warp = sizeof(Element) == 4 ? 2 : 1;
template <typename Element>
inline constexpr unsigned units_per_chunk = units_per_warp<Element> * warps;

/// Chunks of a segment, at least 1.
template <typename Element>
__host__ __device__ std::uint64_t chunks_of(std::uint64_t count) {
  const std::uint64_t blocks = block_count(count);
  constexpr std::uint64_t size = 32 * units_per_chunk<Element>;
  return blocks == 0 ? 1 : (blocks + size - 1) / size;
}

inline std::size_t slots_of(ElementType type, std::size_t count, std::size_t segments) {
  // One more for every segment covers rounding.
  return segments + static_cast<std::size_t>(type == ElementType::f32 ? chunks_of<float>(count)
                                                                      : chunks_of<double>(count));
}

/// Words that a thread block stages for a warp: a unit and what the shifting of a block overlaps.
template <int words>
inline constexpr unsigned stage_words = 32 * code_words<words> + code_words<words> + 3;

/// How a launch is spread over thread blocks. They come in tiers of `width`. The first tiers take a
/// segment each, so that long ones are done in their order; each of the others takes half of the
/// tasks that are left, and the last one the rest: small shares at the end keep the multiprocessors
/// busy to the last.
struct Grid {
  unsigned blocks;
  unsigned width;
  unsigned whole;  ///< tiers of a segment each
};

/// Tasks that fall to this thread block: a run, so that it ends few segments.
struct Share {
  std::uint32_t begin;
  std::uint32_t end;
};

template <unsigned capacity>
__device__ Share share_of(const Batch<capacity>& batch, const Grid& grid) {
  const unsigned tier = blockIdx.x / grid.width;
  const unsigned place = blockIdx.x % grid.width;
  std::uint32_t first, ours;
  if (tier < grid.whole) {
    first = batch.first_task[tier];
    ours = batch.first_task[tier + 1] - first;
  } else {
    const std::uint32_t end = batch.first_task[batch.count];
    const std::uint32_t tasks = end - batch.first_task[grid.whole];
    const std::uint32_t left = tasks >> (tier - grid.whole);
    first = end - left;
    ours = tier + 1 == gridDim.x / grid.width ? left : left - (tasks >> (tier + 1 - grid.whole));
  }
  const std::uint32_t each = ours / grid.width;
  const std::uint32_t more = ours % grid.width;  // thread blocks with one more
  const std::uint32_t begin = first + each * place + min(place, more);
  return {begin, begin + each + (place < more ? 1 : 0)};
}

/// For thread blocks of which `residency` fit on a multiprocessor, with tasks of `run` chunks.
template <unsigned residency, unsigned capacity>
Grid grid_for(const Batch<capacity>& batch, unsigned run) {
  const std::uint32_t tasks = batch.first_task[batch.count];
  if (run > 1) return {tasks, tasks, 0};
  const unsigned width = std::min<unsigned>(tasks, multiprocessors() * residency);
  unsigned whole = 0;
  while (whole + 1 < batch.count && batch.first_task[whole + 1] - batch.first_task[whole] >= width) {
    ++whole;
  }
  const std::uint32_t rest = tasks - batch.first_task[whole];
  const unsigned halves = std::max<unsigned>(1, std::bit_width(rest / (2 * width)));
  return {width * (whole + halves), width, whole};
}

/// Chunks a task for `segments`. Where thread blocks have few each, a thread block that ends two
/// segments is late, so a batch gets a task a thread block then.
template <typename Element, unsigned residency, class AnySegment>
unsigned chunks_a_task(std::span<const AnySegment> segments) {
  if (segments.size() == 1) return 1;
  std::uint64_t chunks = 0;
  for (const auto& s : segments) chunks += chunks_of<Element>(s.count);
  const std::uint64_t width = std::uint64_t{multiprocessors()} * residency;
  return chunks < 4 * width ? static_cast<unsigned>((chunks + width - 1) / width) : 1;
}

template <typename Element>
auto tasks_of(unsigned run) {
  return [=](std::size_t count) { return (chunks_of<Element>(count) + run - 1) / run; };
}

/// Chunks of a segment that whole, aligned units fill; the segment's last unit is in none of them.
template <typename Element>
__device__ std::uint32_t whole_chunks(const Segment& segment, const void* elements) {
  const std::uint64_t units = (block_count(segment.count) + 31) / 32;
  if (units == 0 || reinterpret_cast<std::uintptr_t>(elements) % 16 != 0) return 0;
  return static_cast<std::uint32_t>((units - 1) / units_per_chunk<Element>);
}

/// Asks for the lane's 32 bytes of up to 1 KiB at `from`, of which the warp will read `bytes` soon.
__device__ __forceinline__ void prefetch(const void* from, unsigned bytes) {
  const unsigned at = threadIdx.x % 32 * 32;
  if (at < bytes) codec::cuda::prefetch(static_cast<const unsigned char*>(from) + at);
}

/// A table in shared memory, there when the block has called both.
template <class Table>
struct Shared {
  alignas(16) unsigned char memory[sizeof(Table)];

  __device__ void load(const Table& from) {
    static_assert(sizeof(Table) % sizeof(uint4) == 0);
    const auto* in = reinterpret_cast<const uint4*>(&from);
    auto* out = reinterpret_cast<uint4*>(memory);
    for (unsigned i = threadIdx.x; i < sizeof(Table) / sizeof(uint4); i += threads) {
      __pipeline_memcpy_async(out + i, in + i, sizeof(uint4));
    }
    __pipeline_commit();
  }
  __device__ void await() const {
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  __device__ const Table& get() const { return *reinterpret_cast<const Table*>(memory); }
};

/// Calls `use` with the element type and the words that kernels keep of a block.
template <class Use>
cudaError_t with_words(ElementType type, std::uint32_t block_bits, Use use) {
  if (type == ElementType::f32) {
    if (block_bits <= Traits<float>::kHeaderBits + short_bits) {
      return use.template operator()<float, 0>();
    }
    switch ((block_bits + 31) / 32) {
      case 1: return use.template operator()<float, 1>();
      case 2: return use.template operator()<float, 2>();
      case 3: return use.template operator()<float, 3>();
      default: return use.template operator()<float, 4>();
    }
  }
  if (block_bits <= Traits<double>::kHeaderBits + short_bits) {
    return use.template operator()<double, 0>();
  }
  switch ((block_bits + 31) / 32) {
    case 1: return use.template operator()<double, 1>();
    case 2: return use.template operator()<double, 2>();
    case 3: return use.template operator()<double, 3>();
    case 4: return use.template operator()<double, 4>();
    default: return use.template operator()<double, 8>();
  }
}

}  // namespace mpress::codec::zfp::cuda
