// Decoding: a task is a run of consecutive units of one segment. It sums up the directory before
// its first unit, then decodes unit after unit while the next one is on its way.
#pragma once

#include "codec/mpc/cuda_decode_unit.cuh"

namespace mpress::codec::mpc::cuda {

/// Sum of a directory's first `units` entries, in all threads.
__device__ inline std::uint64_t sum_directory(const unsigned char* directory, std::uint64_t units) {
  __shared__ std::uint64_t parts[32];
  std::uint64_t sum = 0;
  const auto* vectors = reinterpret_cast<const uint4*>(directory);
  const auto add = [&](std::uint32_t pair) { sum += (pair & 0xFFFF) + (pair >> 16); };
  for (std::uint64_t i = threadIdx.x; i < units / 8; i += blockDim.x) {
    const uint4 v = vectors[i];
    add(v.x);
    add(v.y);
    add(v.z);
    add(v.w);
  }
  if (threadIdx.x < units % 8) {
    sum += reinterpret_cast<const std::uint16_t*>(directory)[units - 1 - threadIdx.x];
  }
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += parts[w];
  return sum;
}

/// Elements that were kept as they are; returns the checksum of their words.
template <class Word, bool combining>
__device__ std::uint32_t decode_raw(const unsigned char* payload, std::uint64_t first,
                                    std::uint64_t end, Word* out,
                                    const Output<Word, combining>& output) {
  const auto* from = reinterpret_cast<const Word*>(payload + sizeof(Header));
  std::uint32_t sum = 0;
  for (std::uint64_t i = first + threadIdx.x; i < end; i += unit_threads<Word>) {
    const Word x = from[i];
    output.put(out + i, x);
#pragma unroll
    for (unsigned part = 0; part < word_parts<Word>; ++part) {
      sum += weigh(static_cast<std::uint32_t>(x >> (32 * part)),
                   sizeof(Header) / 4 + i * word_parts<Word> + part);
    }
  }
  return sum;
}

/// Starts to copy a unit of `words` words, from the 16-byte boundary before it; `left` bytes of the
/// payload are behind its beginning.
template <class Word>
__device__ void fetch_unit(unsigned char* to, const unsigned char* from, std::uint64_t left,
                           unsigned words) {
  const unsigned skip = reinterpret_cast<std::uintptr_t>(from) % 16;
  const unsigned end = skip + 4 * words;
  from -= skip;
  if (left >= kUnitBytes + 16) {
    for (unsigned i = 16 * threadIdx.x; i < end; i += 16 * unit_threads<Word>) {
      copy_async<16>(to + i, from + i);
    }
  } else {
    const unsigned there = skip + static_cast<unsigned>(left);
    for (unsigned i = 16 * threadIdx.x; i < end; i += 16 * unit_threads<Word>) {
      copy_async<16>(to + i, from + i, min(there - i, 16u));
    }
  }
}

template <class Word>
__device__ std::uint32_t sum_unit(const std::uint32_t* unit, unsigned words, std::uint32_t first) {
  constexpr unsigned rounds = kUnitBytes / 4 / unit_threads<Word>;
  std::uint32_t sum = 0, by_round = 0;
#pragma unroll
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned i = threadIdx.x + round * unit_threads<Word>;
    if (i < words) {
      const std::uint32_t word = unit[i];
      sum += word;
      by_round += round * word;
    }
  }
  return weigh_rounds(sum, by_round, first + threadIdx.x, unit_threads<Word>);
}

/// What the header says of a payload of `bytes` bytes.
template <class Word>
__device__ Status check_header(const Segment& segment, std::uint64_t bytes, Header& header) {
  if (bytes < sizeof(Header)) return Status::truncated;
  header = *reinterpret_cast<const Header*>(segment.in);
  if (header.version != kVersion || (header.flags & ~kFlagRaw) != 0) return Status::unsupported;
  const std::uint8_t type = sizeof(Word) == 4 ? 1 : 2;
  if (header.type != type || header.count != segment.count || header.dim < 1 ||
      header.dim > kMaxDim) {
    return Status::corrupt;
  }
  if (header.flags & kFlagRaw) {
    const std::uint64_t raw = bytes - sizeof(Header);
    if (raw / sizeof(Word) < segment.count) return Status::truncated;
    return raw == segment.count * sizeof(Word) ? Status::ok : Status::corrupt;
  }
  const std::uint64_t units = unit_count(segment.count, sizeof(Word));
  return sizeof(Header) + directory_bytes(units) > bytes ? Status::truncated : Status::ok;
}

template <class Word, bool combining>
struct UnitRun {
  const unsigned char* payload;
  std::uint64_t bytes;
  Word* out;
  std::uint64_t count, units;  // of the segment
  std::uint64_t first, end;    // units of this task

  /// Decodes them and adds to their checksum.
  __device__ Status decode(const Output<Word, combining>& output, std::uint32_t& sum) const {
    __shared__ alignas(16) unsigned char buffers[2][kUnitBytes + coded_slack];
    __shared__ Totals<Word> totals;
    const auto* sizes = reinterpret_cast<const std::uint16_t*>(payload + sizeof(Header));
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(sizes);
    for (std::uint64_t i = (first + 1) / 2 + threadIdx.x; i < (end + 1) / 2;
         i += unit_threads<Word>) {
      sum += weigh(pairs[i], sizeof(Header) / 4 + i);
    }
    std::uint64_t at = sizeof(Header) + directory_bytes(units) +
                       4 * sum_directory(payload + sizeof(Header), first);
    if (at > bytes) return Status::truncated;
    const auto here = static_cast<unsigned>(end - first);
    if (here == 0) return at == bytes ? Status::ok : Status::corrupt;
    const unsigned last_elements = unit_elements<Word>(count, end - 1);
    const auto elements = [&](unsigned u) { return u + 1 < here ? kUnit<Word> : last_elements; };
    std::uint64_t left = bytes - at;
    // Of unit u with `words` words at `at`: starts its copy.
    const auto fetch = [&](unsigned u, unsigned words) {
      if (words > elements(u) * word_parts<Word>) return Status::corrupt;
      if (4 * words > left) return Status::truncated;
      fetch_unit<Word>(buffers[u % 2], payload + at, left, words);
      return Status::ok;
    };
    sizes += first;
    Word* to = out + first * kUnit<Word>;
    unsigned words = sizes[0];
    unsigned next = here > 1 ? sizes[1] : 0;
    Status status = fetch(0, words);
    for (unsigned u = 0; u < here && status == Status::ok; ++u) {
      const unsigned after = u + 2 < here ? sizes[u + 2] : 0;
      await_copies();
      __syncthreads();
      const auto begin = static_cast<std::uint32_t>(at / 4);
      at += 4 * words;
      left -= 4 * words;
      if (u + 1 < here) status = fetch(u + 1, next);
      if constexpr (combining) {
        if (u + 1 < here && elements(u + 1) == kUnit<Word>) {
          const Word* const mine = to + kUnit<Word> + threadIdx.x * kBlock;
          asm volatile("prefetch.global.L2 [%0];" ::"l"(mine));
        }
      }
      unsigned char* const buffer = buffers[u % 2];
      auto* const unit = reinterpret_cast<std::uint32_t*>(buffer) + begin % 4;
      sum += sum_unit<Word>(unit, words, begin);
      if (!decode_unit<Word>(unit, words, elements(u), totals, output,
                             reinterpret_cast<Word*>(buffer), to)) {
        status = Status::corrupt;
      }
      words = next;
      next = after;
      to += kUnit<Word>;
    }
    await_copies();
    return status == Status::ok && end == units && left != 0 ? Status::corrupt : status;
  }
};

template <class Word, bool combining, unsigned capacity>
__global__ __launch_bounds__(unit_threads<Word>, resident_blocks<Word>) void decode_units(
    const __grid_constant__ Batch<capacity> batch, Workspace work, unsigned units_a_task,
    Combine combine) {
  const Task task = find_task(batch, blockIdx.x);
  const Segment& segment = batch.segments[task.segment];
  SegmentState& state = work.states[task.segment];
  const std::uint64_t units = unit_count(segment.count, sizeof(Word));
  const std::uint64_t first = min(std::uint64_t{task.index} * units_a_task, units);
  const std::uint64_t end = min(first + units_a_task, units);
  auto* const out = reinterpret_cast<Word*>(segment.out);

  std::uint64_t bytes = segment.bytes;
  Status status = Status::ok;
  if (segment.encoded) {
    const std::uint64_t told = *static_cast<const volatile std::uint64_t*>(&segment.encoded->bytes);
    if (told > bytes) status = Status::truncated;
    bytes = told;
  }
  Header header{};
  if (status == Status::ok) {
    if (units_a_task == 1) {
      prefetch_payload(segment.in, bytes, sizeof(Header) + directory_bytes(end), task);
    }
    status = check_header<Word>(segment, bytes, header);
  }
  std::uint32_t sum = 0;
  if (status == Status::ok) {
    const Output<Word, combining> output{combine, header.dim,
                                         reinterpret_cast<std::uintptr_t>(out) % 16 == 0};
    if (header.flags & kFlagRaw) {
      sum = decode_raw(segment.in, first * kUnit<Word>, min(end * kUnit<Word>, segment.count), out,
                       output);
    } else {
      const UnitRun<Word, combining> run{segment.in, bytes, out, segment.count, units, first, end};
      status = run.decode(output, sum);
    }
  }
  const bool failed = status != Status::ok && threadIdx.x == 0 && raise_status(state, status);
  const SegmentEnd all = end_tasks(work.control, state, task.tasks, 1, sum, failed);
  if (!all.last) return;
  if (threadIdx.x == 0) {
    const bool sound = all.checksum + header_checksum(header) == header.checksum;
    const Status found = all.status == Status::ok && !sound ? Status::corrupt : all.status;
    report(segment.result, bytes, found, all.sequence);
  }
  end_segment(batch, work, task.segment, false, false);
}

}  // namespace mpress::codec::mpc::cuda
