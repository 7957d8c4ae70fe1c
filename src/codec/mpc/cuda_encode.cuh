// Encoding: a task is a few consecutive units, which a thread block codes one after another in
// shared memory, then places behind those of earlier tasks and stores.
#pragma once

#include "codec/mpc/cuda_choose.cuh"
#include "codec/mpc/cuda_encode_unit.cuh"

namespace mpress::codec::mpc::cuda {

inline constexpr unsigned most_units_a_task = 4;  // 32 KiB of shared memory

/// Asks for what a task will take or judge, before it is known that it falls to this thread block:
/// in a call of one wave somebody else will ask for this one's own.
template <class Word, unsigned capacity>
__device__ void prefetch_task(const Batch<capacity>& batch, std::uint32_t number, unsigned judges) {
  std::uint32_t s = number / max(judges, 1u);
  std::uint64_t first = 0;
  unsigned elements = kUnit<Word>;
  if (number < judges * batch.count) {
    const std::uint64_t count = batch.segments[s].count;
    if (count < choice::span || number % judges >= choice::runs(count)) return;
    first = choice::start(count, number % judges);
    elements = choice::span;
  } else {
    const Task task = find_task(batch, number - judges * batch.count);
    s = task.segment;
    first = std::uint64_t{task.index} * kUnit<Word>;
  }
  const Segment& segment = batch.segments[s];
  for (unsigned i = threadIdx.x * (32 / sizeof(Word)); i < elements && first + i < segment.count;
       i += unit_threads<Word> * (32 / sizeof(Word))) {
    prefetch(segment.in + (first + i) * sizeof(Word));
  }
}

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

/// Ends a task whose segment's last one waits for all others, with its part of the checksum.
__device__ inline void leave_task(SegmentState& state, std::uint32_t sum) {
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(&state.tasks_done),
               "l"(std::uint64_t{sum} << 32 | 1)
               : "memory");
}
/// The sum of the others' parts.
__device__ inline std::uint32_t await_tasks(const SegmentState& state, std::uint32_t tasks) {
  std::uint64_t done;
  do {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                 : "=l"(done)
                 : "l"(&state.tasks_done)
                 : "memory");
  } while (static_cast<std::uint32_t>(done) != tasks);
  return static_cast<std::uint32_t>(done >> 32);
}

/// The sum over the block's threads, in thread 0. A barrier is inside.
__device__ inline std::uint32_t sum_block(std::uint32_t part) {
  __shared__ std::uint32_t parts[32];
  part = warp_sum(part);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  for (unsigned w = 1; threadIdx.x == 0 && w < blockDim.x / 32; ++w) part += parts[w];
  return part;
}

/// `asked_dim` 0: `judges` thread blocks a segment judge its runs, and leave in `verdicts` what
/// they find.
template <class Word, unsigned capacity>
__global__ __launch_bounds__(unit_threads<Word>, resident_blocks<Word>) void encode_units(
    const __grid_constant__ Batch<capacity> batch, Workspace work, std::uint64_t* verdicts,
    unsigned judges, unsigned units_a_task, unsigned asked_dim) {
  unsigned char* const units = shared_bytes();
  __shared__ Exchange exchange[2];
  __shared__ unsigned sizes[most_units_a_task];
  __shared__ std::uint64_t place;
  __shared__ unsigned chosen_dim;

  if (units_a_task == 1) prefetch_task<Word>(batch, blockIdx.x, judges);
  const std::uint32_t ticket = take_task(work.control);
  if (ticket < judges * batch.count) {
    const std::uint32_t s = ticket / judges;
    judge_runs<Word>(batch.segments[s], ticket % judges, judges, reinterpret_cast<Word*>(units),
                     verdicts + s * verdict_words);
    return;
  }
  const Task task = find_task(batch, ticket - judges * batch.count);
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
  verdicts += task.segment * verdict_words;
  if (asked_dim == 0 && thread < 32) {
    // The first to find out tells the others.
    auto found = static_cast<unsigned>(load_slot(&state.extent));
    if (!__all_sync(all_lanes, found != 0)) {
      found = await_verdict(verdicts, segment.count);
      if (thread == 0) store_slot(&state.extent, found);
    }
    if (thread == 0) chosen_dim = found;
  }
  await_copies();
  __syncthreads();
  const unsigned dim = asked_dim != 0 ? asked_dim : chosen_dim;

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
  std::uint32_t sum = 0;
  if (!raw) {
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
  }
  sum = sum_block(sum);
  if (!last) {
    if (thread == 0) leave_task(state, sum);
    return;
  }
  std::uint32_t sequence = 0;
  if (thread == 0) {
    sequence = sequence_of(work.control);
    sum += await_tasks(state, task.tasks - 1);
  }
  __syncthreads();
  if (thread == 0 && !raw) {
    Header header{kVersion,
                  0,
                  static_cast<std::uint8_t>(dim),
                  sizeof(Word) == 4 ? std::uint8_t{1} : std::uint8_t{2},
                  0,
                  segment.count};
    header.checksum = sum + header_checksum(header);
    *reinterpret_cast<Header*>(segment.out) = header;
    report(segment.result, (begin + total) * 4, Status::ok, sequence);
  }
  if (asked_dim == 0 && thread < verdict_words) verdicts[thread] = 0;
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
