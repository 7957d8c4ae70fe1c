// Encoding: a task is a few consecutive units, which a thread block codes one after another in
// shared memory, then places behind those of earlier tasks and stores.
#pragma once

#include "codec/mpc_cuda_encode_unit.cuh"

namespace mpress::codec::mpc::cuda {

inline constexpr unsigned most_units_a_task = 4;  // 32 KiB of shared memory

/// Starts to copy a unit's elements to shared memory.
template <class Word>
__device__ void fetch_elements(unsigned char* unit, const unsigned char* in, unsigned n,
                               bool aligned) {
  if (aligned && n == kUnit<Word>) {
#pragma unroll
    for (unsigned i = 0; i < kUnitBytes / 16 / unit_threads<Word>; ++i) {
      const unsigned at = 16 * (threadIdx.x + i * unit_threads<Word>);
      copy_async<16>(unit + swizzle(at), in + at);
    }
  } else {
    for (unsigned i = threadIdx.x; i < n; i += unit_threads<Word>) {
      const unsigned at = i * sizeof(Word);
      copy_async<sizeof(Word)>(unit + swizzle(at), in + at);
    }
  }
}

/// Stores a coded unit, whose first word has index `first` in the payload; returns its checksum.
template <class Word>
__device__ std::uint32_t store_unit(const unsigned char* unit, unsigned words,
                                    std::uint32_t* payload, std::uint64_t first) {
  // Weights are index * factor, and 1 more where the index is even: so sums of the words and of
  // the words times their round are all that is needed.
  constexpr unsigned rounds = kUnitBytes / 4 / unit_threads<Word>;
  const auto* from = reinterpret_cast<const std::uint32_t*>(unit);
  std::uint32_t* const to = payload + first;
  std::uint32_t sum = 0, by_round = 0;
#pragma unroll
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned i = threadIdx.x + round * unit_threads<Word>;
    if (i < words) {
      const std::uint32_t word = from[i];
      to[i] = word;
      sum += word;
      by_round += round * word;
    }
  }
  return weigh_rounds(sum, by_round, first + threadIdx.x, unit_threads<Word>);
}

/// Ends a task whose segment's last one waits for all others.
__device__ inline void leave_task(SegmentState& state) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&state.tasks_done) : "memory");
}
__device__ inline void await_tasks(const SegmentState& state, std::uint32_t tasks) {
  std::uint32_t done;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(done)
                 : "l"(&state.tasks_done)
                 : "memory");
  } while (done != tasks);
}

/// `dim` 0: what choose_dims() left in the segment's state.
template <class Word, unsigned capacity>
__global__ __launch_bounds__(unit_threads<Word>, resident_blocks<Word>) void encode_units(
    const __grid_constant__ Batch<capacity> batch, Workspace work, unsigned units_a_task,
    unsigned asked_dim) {
  unsigned char* const units = shared_bytes();
  __shared__ Exchange exchange[2];
  __shared__ unsigned sizes[most_units_a_task];
  __shared__ std::uint64_t place;

  const std::uint32_t ticket = take_task(work.control);
  const Task task = find_task(batch, ticket);
  const Segment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  std::uint64_t* const slots = work.slots + batch.first_task[task.segment];
  const unsigned thread = threadIdx.x;

  const std::uint64_t unit_count = mpc::unit_count(segment.count, sizeof(Word));
  const std::uint64_t first_unit = std::uint64_t{task.index} * units_a_task;
  const unsigned here =
      first_unit >= unit_count
          ? 0
          : static_cast<unsigned>(min(std::uint64_t{units_a_task}, unit_count - first_unit));
  const bool aligned = reinterpret_cast<std::uintptr_t>(segment.in) % 16 == 0;
  for (unsigned k = 0; k < here; ++k) {
    fetch_elements<Word>(units + k * kUnitBytes, segment.in + (first_unit + k) * kUnitBytes,
                         unit_elements<Word>(segment.count, first_unit + k), aligned);
  }
  const unsigned dim = asked_dim != 0 ? asked_dim : static_cast<unsigned>(state.extent);
  await_copies();
  __syncthreads();

  unsigned total = 0;
  Head head;
  for (unsigned k = 0; k < here; ++k) {
    encode_unit<Word>(units + k * kUnitBytes, exchange[k % 2],
                      unit_elements<Word>(segment.count, first_unit + k), dim, head,
                      [&](unsigned words) {
                        total += words;
                        if (thread != 0) return;
                        sizes[k] = words;
                        if (k + 1 == here) publish_unit(slots, task.index, total);
                      });
  }
  if (here == 0 && thread == 0) publish_unit(slots, task.index, 0);
  __syncthreads();
  head.add();
  if (thread < 32) {
    const std::uint64_t before = look_back(slots, task.index, total);
    if (thread == 0) place = before;
  }
  __syncthreads();

  const std::size_t directory = directory_bytes(unit_count);
  const std::uint64_t begin = (sizeof(Header) + directory) / 4 + place;
  const std::uint64_t limit = (sizeof(Header) + segment.count * sizeof(Word)) / 4;
  const bool last = task.index == task.tasks - 1;
  const bool raw = begin + total >= limit;
  auto* const payload = reinterpret_cast<std::uint32_t*>(segment.out);
  if (!raw) {
    std::uint32_t sum = 0;
    std::uint64_t at = begin;
    for (unsigned k = 0; k < here; ++k) {
      sum += store_unit<Word>(units + k * kUnitBytes, sizes[k], payload, at);
      at += sizes[k];
    }
    if (thread <= here && (thread < here || (last && unit_count % 2 != 0))) {
      const std::uint64_t unit = first_unit + thread;
      const std::uint32_t size = thread < here ? sizes[thread] : 0;
      reinterpret_cast<std::uint16_t*>(segment.out + sizeof(Header))[unit] =
          static_cast<std::uint16_t>(size);
      sum += weigh(size << (unit % 2 * 16), sizeof(Header) / 4 + unit / 2);
    }
    add_checksum(state, sum);
  }
  __syncthreads();
  if (!last) {
    if (thread == 0) leave_task(state);
    return;
  }
  if (thread == 0) {
    await_tasks(state, task.tasks - 1);
    if (!raw) {
      Header header{kVersion,
                    0,
                    static_cast<std::uint8_t>(dim),
                    sizeof(Word) == 4 ? std::uint8_t{1} : std::uint8_t{2},
                    0,
                    segment.count};
      header.checksum = atomicAdd(&state.checksum, 0u) + header_checksum(header);
      *reinterpret_cast<Header*>(segment.out) = header;
      report(segment.result, (begin + total) * 4, Status::ok, sequence_of(work.control));
    }
  }
  __syncthreads();
  end_segment(batch, work, task.segment, true, raw);
}

/// How copy_raw() stores an mpc payload.
struct RawForm {
  std::size_t elements_at = sizeof(Header);
  ElementType type;

  __device__ std::uint64_t close(const Segment& segment, std::uint32_t checksum) const {
    Header header{kVersion, kFlagRaw, 1, static_cast<std::uint8_t>(type), 0, segment.count};
    header.checksum = checksum + header_checksum(header);
    *reinterpret_cast<Header*>(segment.out) = header;
    return sizeof(Header) + segment.count * (type == ElementType::f32 ? 4 : 8);
  }
};

}  // namespace mpress::codec::mpc::cuda
