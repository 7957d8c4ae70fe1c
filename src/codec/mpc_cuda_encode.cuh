// Encoding: a task is a few consecutive units, which a thread block codes one after another in
// shared memory, then places behind those of earlier tasks and stores.
#pragma once

#include "codec/mpc_cuda_unit.cuh"

namespace mpress::codec::mpc::cuda {

inline constexpr unsigned most_units_a_task = 4;

/// Elements and coded units lie in the same shared memory. Elements are at swizzled addresses, so
/// that neighbouring threads read their blocks from different banks.
__device__ inline unsigned swizzle(unsigned byte) { return byte ^ (byte >> 3 & 0x30); }

template <class Word>
__device__ const Word& element_at(const unsigned char* unit, unsigned i) {
  return *reinterpret_cast<const Word*>(unit + swizzle(i * sizeof(Word)));
}

/// What the warps of a block tell each other, of one unit.
struct Exchange {
  uint4 extents[8];
  uint2 planes[8];           ///< sums of the widths of orders 0 (low half), 1 (high half), 2
  std::uint32_t groups[16];  ///< bytes of planes (low half) and tables (high half)
};

// ---- Extent -----------------------------------------------------------------------------------

/// Magnitudes of a thread's elements in 32 bits, shifted left by 1.
struct Top {
  std::uint32_t least;  ///< of those that are not zero, less 1
  std::uint32_t largest;
};

__device__ inline void widen(Top& top, std::uint32_t bits) {
  const std::uint32_t twice = bits << 1;
  top.least = __viaddmin_u32(twice, ~0u, top.least);
  top.largest = max(top.largest, twice);
}
__device__ inline void widen(Top& top, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits), high = static_cast<std::uint32_t>(bits >> 32);
  const std::uint32_t twice = high << 1;
  top.least = min(top.least, (twice | min(low, 1u)) - 1);
  top.largest = max(top.largest, twice);
}

/// An extent with the exponents of `top`.
template <class Word>
__device__ Extent<Word> extent_of(Top top, Word any) {
  constexpr unsigned up = Layout<Word>::bits - 32;
  const Word least = top.least == ~0u ? ~Word{0} : ((Word{top.least} + 1) << up >> 1) - 1;
  return {least, Word{top.largest} << up >> 1, any};
}

template <class Word>
__device__ Extent<Word> unit_extent(Exchange& exchange, Top top, Word any) {
  top.least = __reduce_min_sync(all_lanes, top.least);
  top.largest = __reduce_max_sync(all_lanes, top.largest);
  auto low = __reduce_or_sync(all_lanes, static_cast<std::uint32_t>(any));
  std::uint32_t high = 0;
  if constexpr (sizeof(Word) == 8) {
    high = __reduce_or_sync(all_lanes, static_cast<std::uint32_t>(any >> 32));
  }
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) exchange.extents[threadIdx.x / 32] = {top.least, top.largest, low, high};
  __syncthreads();
  const uint4 e = exchange.extents[lane % unit_warps<Word>];
  top.least = __reduce_min_sync(all_lanes, e.x);
  top.largest = __reduce_max_sync(all_lanes, e.y);
  low = __reduce_or_sync(all_lanes, e.z);
  if constexpr (sizeof(Word) == 4) return extent_of<Word>(top, low);
  high = __reduce_or_sync(all_lanes, e.w);
  return extent_of<Word>(top, static_cast<Word>(std::uint64_t{high} << 32 | low));
}

// ---- Widths -----------------------------------------------------------------------------------

/// The width that a block's differences need after zigzag().
template <class Word>
struct Spread;

template <>
struct Spread<std::uint32_t> {
  std::int32_t least = 0, most = 0;
  __device__ void add(std::uint32_t d) {
    least = min(least, static_cast<std::int32_t>(d));
    most = max(most, static_cast<std::int32_t>(d));
  }
  __device__ unsigned width() const {
    const auto largest = static_cast<std::uint32_t>(max(most, ~least));
    return bit_width(largest << 1 | static_cast<std::uint32_t>(least) >> 31);
  }
};

template <>
struct Spread<std::uint64_t> {
  std::uint64_t any = 0;
  std::uint32_t signs = 0;
  __device__ void add(std::uint64_t d) {
    const auto high = static_cast<std::int32_t>(d >> 32);
    const auto sign = static_cast<std::int64_t>(high >> 31);
    any |= d ^ static_cast<std::uint64_t>(sign);
    signs |= static_cast<std::uint32_t>(high);
  }
  __device__ unsigned width() const { return bit_width(any << 1 | signs >> 31); }
};

template <class Word>
__device__ Word ordered_of(Word bits, Scale<Word> scale) {
  const Word magnitude = (bits & ~Layout<Word>::sign) >> scale.shift;
  if constexpr (sizeof(Word) == 4) {
    const auto above = static_cast<std::uint32_t>(__viaddmax_s32(
        static_cast<std::int32_t>(magnitude), -static_cast<std::int32_t>(scale.gap), 0));
    return above ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31);
  } else {
    const auto above = static_cast<std::int64_t>(magnitude - scale.gap);
    const auto sign = static_cast<std::int64_t>(bits) >> 63;
    return static_cast<Word>((above & ~(above >> 63)) ^ sign);
  }
}

/// How a thread's group is stored.
struct Group {
  std::uint32_t field;
  std::uint32_t table;   ///< bytes
  std::uint32_t planes;  ///< bytes, of all blocks
  std::uint32_t width;   ///< of this thread's block
  std::uint32_t entry;   ///< of this thread's block
};

/// As choose_table() of the host's kernels, for the two groups of a warp.
__device__ inline Group choose_table(unsigned width) {
  const bool upper = threadIdx.x % 32 >= kGroupBlocks;
  const unsigned low_largest = __reduce_max_sync(all_lanes, upper ? 0 : width);
  const unsigned high_largest = __reduce_max_sync(all_lanes, upper ? width : 0);
  const unsigned code = width_to_code(upper ? high_largest : low_largest);
  const unsigned largest = code_to_width(code);
  const unsigned narrower = largest - width;
  const unsigned two = min(narrower, 3u), three = min(narrower, 7u);
  const unsigned four = min(narrower, 14u);
  // What each kind of table saves.
  const unsigned saved = two | three << 10 | (width == 0 ? largest : four) << 20;
  const unsigned low_saved = __reduce_add_sync(all_lanes, upper ? 0 : saved);
  const unsigned high_saved = __reduce_add_sync(all_lanes, upper ? saved : 0);
  const unsigned all = upper ? high_saved : low_saved;
  unsigned kind = 0, best = 0;
  int best_size = 0;
#pragma unroll
  for (unsigned k = 1; k < 4; ++k) {
    const unsigned saving = k == 3 ? all >> 20 : all >> (10 * (k - 1)) & 0x3FF;
    const int size = static_cast<int>(table_bytes(k)) - static_cast<int>(saving);
    if (size < best_size) {
      kind = k;
      best = saving;
      best_size = size;
    }
  }
  Group g;
  g.field = code | kind << 6;
  g.table = table_bytes(kind);
  g.planes = kGroupBlocks * largest - best;
  g.entry = table_entry(kind, largest, width);
  g.width = table_width(kind, largest, g.entry);
  return g;
}

// ---- Unit -------------------------------------------------------------------------------------

__device__ inline unsigned char* shared_bytes() {
  extern __shared__ uint4 shared_units[];
  return reinterpret_cast<unsigned char*>(shared_units);
}

/// The beginning of a block's planes in a word that an earlier block has stored: it is added when
/// all words are there.
struct Head {
  std::uint32_t bits = 0;
  unsigned at = 0;  // in shared_bytes()

  __device__ void add() {
    if (bits != 0) atomicOr(reinterpret_cast<std::uint32_t*>(shared_bytes() + at), bits);
    bits = 0;
  }
};

/// Puts the planes of a thread's block at `byte`, but for what it returns.
template <class Word>
__device__ Head put_planes(unsigned char* unit, unsigned byte, unsigned width,
                           const std::uint32_t (&planes)[8 * word_parts<Word>]) {
  if (width == 0) return {};
  auto* const words = reinterpret_cast<std::uint32_t*>(unit) + byte / 4;
  const unsigned skip = byte % 4;
  const unsigned end = skip + width;
  const std::uint32_t first = planes[0] << (8 * skip);
  if (skip == 0) words[0] = first;
#pragma unroll
  for (unsigned i = 1; i <= 8 * word_parts<Word>; ++i) {
    const std::uint32_t next = i < 8 * word_parts<Word> ? planes[i] : 0;
    if (4 * i < end) words[i] = __funnelshift_l(planes[i - 1], next, 8 * skip);
  }
  const auto at = reinterpret_cast<unsigned char*>(words) - shared_bytes();
  return {skip == 0 ? 0 : first, static_cast<unsigned>(at)};
}

template <class Word>
__device__ Head pack_block(unsigned char* unit, unsigned byte, unsigned width,
                           const Word (&residual)[kBlock]) {
  std::uint32_t planes[8 * word_parts<Word>];
#pragma unroll
  for (unsigned part = 0; part < word_parts<Word>; ++part) {
    std::uint32_t r[8];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) r[i] = static_cast<std::uint32_t>(residual[i] >> (32 * part));
    to_planes(r, planes + 8 * part);
  }
  return put_planes<Word>(unit, byte, width, planes);
}

/// Codes the n elements in `unit` there. Calls `known(size)` with its size in words as soon as that
/// is known. `head` is still to be added, behind a barrier, by the next call or the caller.
template <class Word, class Known>
__device__ void encode_unit(unsigned char* unit, Exchange& exchange, unsigned n, unsigned dim,
                            Head& head, Known known) {
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned groups = (n + kGroup - 1) / kGroup;
  const unsigned raw_words = n * word_parts<Word>;
  const bool used = thread < groups * kGroupBlocks;
  Word x[kBlock], before[2];  // before[0] is the element before x[0]
  const unsigned first = thread * kBlock;
  if (dim == 1 && n == kUnit<Word>) {
    constexpr unsigned each = 16 / sizeof(Word);
    // A block's vectors are in one row of swizzle().
    const unsigned at = swizzle(first * sizeof(Word));
#pragma unroll
    for (unsigned i = 0; i < kBlock; i += each) {
      alignas(16) Word v[each];
      *reinterpret_cast<uint4*>(v) =
          *reinterpret_cast<const uint4*>(unit + (at ^ i * sizeof(Word)));
#pragma unroll
      for (unsigned j = 0; j < each; ++j) x[i + j] = v[j];
    }
    before[0] = before[1] = x[0];
    if (first != 0) {
      const Word* const last = &element_at<Word>(unit, first - 2);
      before[1] = last[0];
      before[0] = last[1];
    }
  } else {
    const Interleaving order(n, dim);
    const unsigned from = min(max(first, 2u) - 2, n - 1);
    auto at = order.walk(from);
    Word next = element_at<Word>(unit, order.element(at));
    before[1] = before[0] = next;
    for (unsigned place = from; place + 1 < n && place + 1 < first; ++place) {
      order.advance(at);
      before[1] = before[0];
      before[0] = next = element_at<Word>(unit, order.element(at));
    }
    unsigned place = first == 0 ? 0 : min(first, n) - 1;
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) {
      if (first + i > place && place + 1 < n) {
        order.advance(at);
        ++place;
        next = element_at<Word>(unit, order.element(at));
      }
      x[i] = next;
    }
  }

  Top top{~0u, 0};
  Word any = 0;
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    widen(top, x[i]);
    any |= x[i];
  }
  const Extent<Word> extent = unit_extent<Word>(exchange, top, any);
  head.add();
  if (extent.any == 0) {
    known(0u);
    return;
  }
  UnitWord word = unit_word(extent);
  const Scale<Word> scale = scale_of<Word>(word);
  Word a[kBlock];
  const Word a0 = ordered_of(before[0], scale), a1 = ordered_of(before[1], scale);
  Word smallest = ~Word{0};
#pragma unroll
  for (unsigned i = 0; i < kBlock; ++i) {
    a[i] = ordered_of(x[i], scale);
    smallest = min(smallest, x[i] & ~Layout<Word>::sign);
  }
  const auto difference = [&](unsigned i) { return a[i] - (i > 0 ? a[i - 1] : a0); };

  unsigned widths[kOrders] = {};
  if (used) {
    const Word distance = scale.ceiling - (smallest >> scale.shift);
    widths[0] = bit_width(static_cast<Word>(distance << 1 | any >> (Layout<Word>::bits - 1)));
    Spread<Word> one, two;
    Word last = a0 - a1;
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) {
      const Word d = difference(i);
      one.add(d);
      two.add(d - last);
      last = d;
    }
    widths[1] = one.width();
    widths[2] = two.width();
  }
  const unsigned sum01 = __reduce_add_sync(all_lanes, widths[0] | widths[1] << 16);
  const unsigned sum2 = __reduce_add_sync(all_lanes, widths[2]);
  if (lane == 0) exchange.planes[warp] = {sum01, sum2};
  __syncthreads();
  uint2 sums = lane < unit_warps<Word> ? exchange.planes[lane] : uint2{0, 0};
  sums.x = __reduce_add_sync(all_lanes, sums.x);
  sums.y = __reduce_add_sync(all_lanes, sums.y);
  const unsigned size0 = sums.x & 0xFFFF, size1 = (sums.x >> 16) + sizeof(Word);
  const unsigned size2 = sums.y + sizeof(Word);
  word.order = size0 <= size1 && size0 <= size2 ? 0 : size1 <= size2 ? 1 : 2;

  const Group group = choose_table(word.order == 0   ? widths[0]
                                   : word.order == 1 ? widths[1]
                                                     : widths[2]);
  if (used && lane % kGroupBlocks == 0) {
    exchange.groups[thread / kGroupBlocks] = group.planes | group.table << 16;
  }
  const unsigned offset = sum_lanes(used ? group.width : 0) - group.width;
  __syncthreads();
  const unsigned listed = lane < groups ? exchange.groups[lane] : 0;
  const unsigned all = __reduce_add_sync(all_lanes, listed);
  const unsigned earlier = __reduce_add_sync(all_lanes, lane < 2 * warp ? listed : 0);
  const unsigned seed_size = word.order == 0 ? 0 : sizeof(Word);
  const bool constant = (all & 0xFFFF) == 0 && seed_size != 0;
  const unsigned fields = 4 + seed_size;
  const unsigned tables = fields + groups;
  const unsigned planes = tables + (all >> 16);
  const unsigned size = constant ? fields : planes + (all & 0xFFFF);
  const unsigned words = min((size + 3) / 4, raw_words);
  known(words);
  if (words == raw_words) {
    auto* to = reinterpret_cast<Word*>(unit);
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) {
      if (first + i < n) to[first + i] = x[i];
    }
    return;
  }

  if (thread == 0) {
    auto* const begin = reinterpret_cast<std::uint32_t*>(unit);
    begin[0] = pack_unit_word(word);
    if (seed_size != 0) {
      begin[1] = static_cast<std::uint32_t>(a0);
      if constexpr (sizeof(Word) == 8) begin[2] = static_cast<std::uint32_t>(a0 >> 32);
    }
  }
  if (constant) return;
  std::uint32_t entries[4];
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) entries[i] = __ballot_sync(all_lanes, group.entry >> i & 1);
  const unsigned other_table = __shfl_sync(all_lanes, group.table, 0);
  if (!used) return;
  const unsigned k = lane % kGroupBlocks;
  if (k == 0) unit[fields + thread / kGroupBlocks] = static_cast<unsigned char>(group.field);
  if (k < group.table) {
    const unsigned table = tables + (earlier >> 16) + (lane >= kGroupBlocks ? other_table : 0);
    const std::uint32_t bits =
        k < 4 ? (k < 2 ? entries[0] : entries[1]) : (k < 6 ? entries[2] : entries[3]);
    unit[table + k] = static_cast<unsigned char>(bits >> (lane / kGroupBlocks * 16 + k % 2 * 8));
  }
  // The word in which the planes begin, if it has bytes of tables.
  if (thread < 3 && planes % 4 + thread < 4 && planes % 4 != 0) unit[planes + thread] = 0;
  Word r[kBlock];
  if (word.order == 0) {
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) r[i] = to_distance(x[i], scale);
  } else if (word.order == 1) {
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) r[i] = zigzag<Word>(difference(i));
  } else {
    Word last = a0 - a1;
#pragma unroll
    for (unsigned i = 0; i < kBlock; ++i) {
      const Word d = difference(i);
      r[i] = zigzag<Word>(d - last);
      last = d;
    }
  }
  head = pack_block<Word>(unit, planes + (earlier & 0xFFFF) + offset, group.width, r);
}

// ---- Kernel -----------------------------------------------------------------------------------

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
