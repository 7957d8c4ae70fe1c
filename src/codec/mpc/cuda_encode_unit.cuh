// Encoding one unit in shared memory.
#pragma once

#include "codec/mpc/cuda_analyse.cuh"

namespace mpress::codec::mpc::cuda {

/// Elements and coded units lie in the same shared memory. Elements are at swizzled addresses, so
/// that neighbouring threads read their blocks from different banks.
__device__ inline unsigned swizzle(unsigned byte) { return byte ^ (byte >> 3 & 0x30); }

template <class Word>
__device__ const Word& element_at(const unsigned char* unit, unsigned i) {
  return *reinterpret_cast<const Word*>(unit + swizzle(i * sizeof(Word)));
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
template <unsigned planes_words>
__device__ Head put_planes(unsigned char* unit, unsigned byte, unsigned width,
                           const std::uint32_t (&planes)[planes_words]) {
  if (width == 0) return {};
  auto* const words = reinterpret_cast<std::uint32_t*>(unit) + byte / 4;
  const unsigned skip = byte % 4;
  const unsigned end = skip + width;
  const std::uint32_t first = planes[0] << (8 * skip);
  if (skip == 0) words[0] = first;
#pragma unroll
  for (unsigned i = 1; i <= planes_words; ++i) {
    const std::uint32_t next = i < planes_words ? planes[i] : 0;
    if (4 * i < end) words[i] = __funnelshift_l(planes[i - 1], next, 8 * skip);
  }
  const auto at = reinterpret_cast<unsigned char*>(words) - shared_bytes();
  return {skip == 0 ? 0 : first, static_cast<unsigned>(at)};
}

/// `narrow`, the same for a warp: no width is above 8.
template <class Word>
__device__ Head pack_block(unsigned char* unit, unsigned byte, unsigned width, bool narrow,
                           const Word (&residual)[kBlock]) {
  if (narrow) {
    std::uint64_t bytes = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) bytes |= std::uint64_t{residual[i] & 0xFF} << (8 * i);
    bytes = transpose_bits(bytes);
    const std::uint32_t planes[2] = {static_cast<std::uint32_t>(bytes),
                                     static_cast<std::uint32_t>(bytes >> 32)};
    return put_planes(unit, byte, width, planes);
  }
  std::uint32_t planes[8 * word_parts<Word>];
#pragma unroll
  for (unsigned part = 0; part < word_parts<Word>; ++part) {
    std::uint32_t r[8];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) r[i] = static_cast<std::uint32_t>(residual[i] >> (32 * part));
    to_planes(r, planes + 8 * part);
  }
  return put_planes(unit, byte, width, planes);
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
  const unsigned sum01 = warp_sum(widths[0] | widths[1] << 16);
  const unsigned sum2 = warp_sum(widths[2]);
  if (lane == 0) exchange.planes[warp] = {sum01, sum2};
  __syncthreads();
  uint2 sums = lane < unit_warps<Word> ? exchange.planes[lane] : uint2{0, 0};
  sums.x = warp_sum(sums.x);
  sums.y = warp_sum(sums.y);
  const unsigned size0 = sums.x & 0xFFFF, size1 = (sums.x >> 16) + sizeof(Word);
  const unsigned size2 = sums.y + sizeof(Word);
  word.order = size0 <= size1 && size0 <= size2 ? 0 : size1 <= size2 ? 1 : 2;

  const Group group = choose_table<Word>(word.order == 0   ? widths[0]
                                         : word.order == 1 ? widths[1]
                                                           : widths[2]);
  if (used && lane % kGroupBlocks == 0) {
    exchange.groups[thread / kGroupBlocks] = group.planes | group.table << 16;
  }
  const unsigned offset = sum_lanes(used ? group.width : 0) - group.width;
  __syncthreads();
  const unsigned listed = lane < groups ? exchange.groups[lane] : 0;
  const unsigned all = warp_sum(listed);
  const unsigned earlier = warp_sum(lane < 2 * warp ? listed : 0);
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
  const bool narrow = !__any_sync(all_lanes, group.width > 8);
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
  head = pack_block<Word>(unit, planes + (earlier & 0xFFFF) + offset, group.width, narrow, r);
}

}  // namespace mpress::codec::mpc::cuda
