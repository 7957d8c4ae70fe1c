// Decoding: a task is a run of consecutive units of one segment. It sums up the directory before
// its first unit, then decodes unit after unit while the next one is on its way.
#pragma once

#include "codec/mpc_cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

/// Reads beyond a unit's end, of what is masked later.
inline constexpr unsigned coded_slack = 16 + 80;

/// What the warps of a block tell each other, of one unit.
template <class Word>
struct Totals {
  std::uint32_t widths[unit_warps<Word>];
  Word residuals[unit_warps<Word>];  ///< orders 1 and 2: of the last order's differences
  Word values[unit_warps<Word>];     ///< order 2: of their sums
};

// ---- Output -----------------------------------------------------------------------------------

template <class Word>
using ElementOf = std::conditional_t<sizeof(Word) == 4, float, double>;

template <class T>
__device__ T combined(Combine combine, T have, T value) {
  if (combine == Combine::sum) return have + value;
  if (isnan(have) || isnan(value)) return have + value;
  return combine == Combine::min ? min(have, value) : max(have, value);
}

template <class Word>
__device__ Word combine_words(Combine combine, Word have, Word value) {
  if constexpr (sizeof(Word) == 4) {
    return __float_as_uint(combined(combine, __uint_as_float(have), __uint_as_float(value)));
  } else {
    return static_cast<Word>(
        __double_as_longlong(combined(combine, __longlong_as_double(static_cast<long long>(have)),
                                      __longlong_as_double(static_cast<long long>(value)))));
  }
}

/// Where elements go, and what becomes of those that are there.
template <class Word, bool combining>
struct Output {
  Combine combine;
  unsigned dim;
  bool aligned;  // to 16 bytes

  __device__ void put(Word* to, Word value) const {
    if constexpr (combining) value = combine_words(combine, *to, value);
    *to = value;
  }
  /// 16 bytes of elements.
  __device__ void put(uint4* to, const Word* values) const {
    constexpr unsigned each = 16 / sizeof(Word);
    alignas(16) Word v[each];
#pragma unroll
    for (unsigned i = 0; i < each; ++i) v[i] = values[i];
    if constexpr (combining) {
      alignas(16) Word have[each];
      *reinterpret_cast<uint4*>(have) = *to;
#pragma unroll
      for (unsigned i = 0; i < each; ++i) v[i] = combine_words(combine, have[i], v[i]);
    }
    *to = *reinterpret_cast<const uint4*>(v);
  }
  /// A unit's n elements; `value(i)` gives the i-th after de-interleaving.
  template <class Value>
  __device__ void put_unit(Word* to, unsigned n, Value value) const {
    const Interleaving order(n, dim);
    for (unsigned i = threadIdx.x; i < n; i += unit_threads<Word>) {
      put(to + i, value(dim == 1 ? i : order.place(i)));
    }
  }
};

// ---- Unit -------------------------------------------------------------------------------------

__device__ inline unsigned byte_at(const std::uint32_t* words, unsigned byte) {
  return reinterpret_cast<const unsigned char*>(words)[byte];
}

/// The planes of a thread's block at `byte`, back to residuals below planes of something else.
template <class Word>
__device__ void unpack_block(const std::uint32_t* unit, unsigned byte, Word (&residual)[kBlock]) {
  const std::uint32_t* const words = unit + byte / 4;
  const unsigned skip = byte % 4 * 8;
  std::uint32_t low = words[0];
#pragma unroll
  for (unsigned part = 0; part < word_parts<Word>; ++part) {
    std::uint32_t planes[8], r[8];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint32_t high = words[8 * part + i + 1];
      planes[i] = __funnelshift_r(low, high, skip);
      low = high;
    }
    from_planes(planes, r);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      residual[i] = part == 0 ? r[i] : residual[i] | Word{r[i]} << (32 * part % Layout<Word>::bits);
    }
  }
}

/// Undoes order 1 or 2 for the whole unit: residuals, with `mask`, to ordered integers.
template <class Word>
__device__ void integrate(Totals<Word>& totals, unsigned order, Word seed, Word mask,
                          Word (&x)[kBlock]) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Word sum = 0, sums = 0;  // of the thread's differences, and of their sums
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    // unzigzag() of what the mask leaves.
    sum += (x[i] >> 1 & mask >> 1) ^ (Word{0} - (x[i] & mask & 1));
    x[i] = sum;
    sums += sum;
  }
  Word d = sum, v = sums;
  if (order == 1) {
    d = sum_lanes(sum);
    if (lane == 31) totals.residuals[warp] = d;
  } else {
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const Word d_before = __shfl_up_sync(all_lanes, d, step);
      const Word v_before = __shfl_up_sync(all_lanes, v, step);
      if (lane >= step) {
        v += v_before + kBlock * step * d_before;
        d += d_before;
      }
    }
    if (lane == 31) {
      totals.residuals[warp] = d;
      totals.values[warp] = v;
    }
  }
  __syncthreads();
  if (order == 1) {
    Word start = seed + d - sum;
#pragma unroll
    for (unsigned w = 0; w + 1 < unit_warps<Word>; ++w) {
      if (w < warp) start += totals.residuals[w];
    }
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] += start;
    return;
  }
  Word slope = 0, start = seed;  // before the warp
#pragma unroll
  for (unsigned w = 0; w + 1 < unit_warps<Word>; ++w) {
    if (w < warp) {
      start += totals.values[w] + 32 * kBlock * slope;
      slope += totals.residuals[w];
    }
  }
  // Before the thread.
  const Word d_own = d - sum;
  start += v - sums - kBlock * d_own + lane * kBlock * slope;
  slope += d_own;
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    start += x[i] + slope;
    x[i] = start;
  }
}

/// from_ordered() in fewer instructions.
template <class Word>
__device__ Word element_of(Word ordered, Scale<Word> scale) {
  if constexpr (sizeof(Word) == 4) {
    const std::uint32_t above =
        ordered ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(ordered) >> 31);
    const std::uint32_t unit = 1u << scale.shift;
    const std::uint32_t magnitude = min(above, 1u) * (scale.gap * unit) + above * unit;
    return magnitude | (ordered & Layout<Word>::sign);
  } else {
    return from_ordered(ordered, scale);
  }
}

/// Decodes a unit of `words` words to n elements; false, for all threads, where it contradicts
/// itself. `shared` holds it, 4-byte aligned, and is overwritten.
template <class Word, bool combining>
__device__ bool decode_unit(std::uint32_t* unit, unsigned words, unsigned n, Totals<Word>& totals,
                            const Output<Word, combining>& output, Word* staging, Word* out) {
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned groups = (n + kGroup - 1) / kGroup;
  if (words == 0) {
    output.put_unit(out, n, [](unsigned) { return Word{0}; });
    return true;
  }
  if (words == n * word_parts<Word>) {
    output.put_unit(out, n, [&](unsigned i) { return load_element<Word>(unit, i); });
    return true;
  }
  const UnitWord word = unpack_unit_word(unit[0]);
  if (!valid_unit_word<Word>(word)) return false;
  const Scale<Word> scale = scale_of<Word>(word);
  const unsigned seed_words = word.order == 0 ? 0 : word_parts<Word>;
  const unsigned bytes = 4 * words;
  if (1 + seed_words > words) return false;
  const Word seed = seed_words == 0 ? 0 : load_element<Word>(unit + 1, 0);
  if (1 + seed_words == words) {
    if (seed_words == 0) return false;
    const Word value = from_ordered(seed, scale);
    output.put_unit(out, n, [&](unsigned) { return value; });
    return true;
  }

  const unsigned fields = 4 + 4 * seed_words;
  const unsigned tables = fields + groups;
  if (tables > bytes) return false;
  const unsigned field = lane < groups ? byte_at(unit, fields + lane) : 0;
  const unsigned size = table_bytes(field >> 6);
  const unsigned until = sum_lanes(size);
  const unsigned planes = tables + __shfl_sync(all_lanes, until, 31);
  if (__any_sync(all_lanes, code_to_width(field & 63) > Layout<Word>::bits)) return false;
  if (planes > bytes) return false;

  const unsigned group = __shfl_sync(all_lanes, field | (until - size) << 8, thread / kGroupBlocks);
  const unsigned kind = group >> 6 & 3;
  const unsigned table = tables + (group >> 8) + (lane >> 3 & 1);
  unsigned entry = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (i < table_bits(kind)) entry |= (byte_at(unit, table + 2 * i) >> lane % 8 & 1) << i;
  }
  const unsigned width =
      thread < groups * kGroupBlocks ? table_width(kind, code_to_width(group & 63), entry) : 0;
  unsigned offset = sum_lanes(width);
  if (lane == 31) totals.widths[warp] = offset;
  __syncthreads();
  const unsigned total = lane < unit_warps<Word> ? totals.widths[lane] : 0;
  const unsigned used = planes + __reduce_add_sync(all_lanes, total);
  if ((used + 3) / 4 != words) return false;
  offset += planes - width + __reduce_add_sync(all_lanes, lane < warp ? total : 0);

  Word x[kBlock];
  unpack_block<Word>(unit, offset, x);
  const Word mask = width == 0 ? 0 : ~Word{0} >> (Layout<Word>::bits - width);
  if (word.order == 0) {
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] = from_distance(x[i] & mask, scale);
  } else {
    integrate<Word>(totals, word.order, seed, mask, x);
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) x[i] = element_of(x[i], scale);
  }
  const unsigned first = thread * kBlock;
  if (output.dim == 1 && output.aligned && n == kUnit<Word>) {
    constexpr unsigned each = 16 / sizeof(Word);
#pragma unroll
    for (unsigned i = 0; i < kBlock; i += each) {
      output.put(reinterpret_cast<uint4*>(out + first + i), x + i);
    }
    return true;
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) staging[first + i] = x[i];
  __syncthreads();
  output.put_unit(out, n, [&](unsigned i) { return staging[i]; });
  return true;
}

// ---- Kernel -----------------------------------------------------------------------------------

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
  if (status == Status::ok) status = check_header<Word>(segment, bytes, header);
  if (status == Status::ok) {
    std::uint32_t sum = 0;
    const Output<Word, combining> output{combine, header.dim,
                                         reinterpret_cast<std::uintptr_t>(out) % 16 == 0};
    if (header.flags & kFlagRaw) {
      sum = decode_raw(segment.in, first * kUnit<Word>, min(end * kUnit<Word>, segment.count), out,
                       output);
    } else {
      const UnitRun<Word, combining> run{segment.in, bytes, out, segment.count, units, first, end};
      status = run.decode(output, sum);
    }
    add_checksum(state, sum);
  }
  if (status != Status::ok && threadIdx.x == 0) raise_status(state, status);
  if (!is_last_task(state, task.tasks)) return;
  if (threadIdx.x == 0) {
    auto found = static_cast<Status>(atomicMax(&state.status, 0u));
    const std::uint32_t sum = atomicAdd(&state.checksum, 0u) + header_checksum(header);
    if (found == Status::ok && sum != header.checksum) found = Status::corrupt;
    report(segment.result, bytes, found, sequence_of(work.control));
  }
  end_segment(batch, work, task.segment, false, false);
}

}  // namespace mpress::codec::mpc::cuda
