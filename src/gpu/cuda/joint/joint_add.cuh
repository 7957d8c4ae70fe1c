// How the warps of kernels that sum jointly send rows, and add up what came for one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/any_order.hpp"
#include "codec/combine.hpp"
#include "gpu/cuda/joint/joint_rows.cuh"
#include "gpu/cuda/joint/joint_units.cuh"

namespace mpress::gpu {

namespace any_order = codec::any_order;
using codec::szp::Quantizer;
using joint_sum::Layout;

/// Bytes of rows, as one lane of a warp counts them.
struct Traffic {
  std::uint64_t sent = 0, received = 0;
};

/// Of a row of `number` quanta a lane, or of elements.
template <unsigned number>
__device__ unsigned bytes_of(const RowHead& head) {
  return sizeof head +
         (head.bits == joint_sum::as_elements ? joint_sum::row_bytes : number * head.bits * 4);
}

/// Sends a row of quanta. Returns the bytes of each target's.
template <unsigned number>
__device__ __forceinline__ unsigned send_quanta(const Targets& to,
                                                const std::int32_t (&q)[number]) {
  const RowHead head = head_of(q);
  if (head.bits == 0) {
    if (threadIdx.x % 32 == 0) to.each([&](RowHead* at, std::byte*) { *at = head; });
    return bytes_of<number>(head);
  }
  with_bits<number>(head.bits, [&]<unsigned bits>() {
    std::uint32_t w[words_of(number, bits)];
    pack<bits>(q, head.least, w);
    to.each([&](RowHead* at, std::byte* row) {
      if (threadIdx.x % 32 == 0) *at = head;
      store_words(row, w);
    });
  });
  return bytes_of<number>(head);
}

__device__ __forceinline__ void send_head_of_elements(const Targets& to) {
  if (threadIdx.x % 32 != 0) return;
  to.each([&](RowHead* at, std::byte*) { *at = {0, joint_sum::as_elements, {}}; });
}

template <class T>
__device__ __forceinline__ unsigned send_elements(const Targets& to, const T (&x)[per_lane<T>]) {
  send_head_of_elements(to);
  to.each([&](RowHead*, std::byte* row) {
    store_row(reinterpret_cast<T*>(row), joint_sum::row_elements(sizeof(T)), x);
  });
  return sizeof(RowHead) + joint_sum::row_bytes;
}

/// A head that came, of the thread's row.
__device__ __forceinline__ RowHead load_head(const RowHead* at) {
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(at));
  RowHead head;
  memcpy(&head, &words, sizeof head);
  return head;
}

/// By the lanes of a row's warp. Seldom, so that nothing is counted where all are quanta.
__device__ inline void tell_of_elements(const SumCall& call) {
  if (!call.tells_of_elements || threadIdx.x % 32 != 0) return;
  *const_cast<volatile std::uint32_t*>(&call.tally->as_elements) = 1;
  __threadfence_system();
}

/// What came for a unit of this member's own part.
struct Contributions {
  const SumCall& call;
  const std::uint32_t place;

  __device__ RowHead head(unsigned other) const {
    return load_head(call.head_of(call.own, call.contribution_from[other] + place));
  }
  __device__ const std::byte* row(unsigned other) const {
    return call.row_of(call.own, call.contribution_from[other] + place);
  }
};

/// A row whose sums are not all told by quanta: element by element, as combine_in_any_order() does.
template <class T>
__device__ __noinline__ unsigned sum_elements(const SumCall& call, const Quantizer<T>& z,
                                              const Contributions& from, const T* input, T* out,
                                              std::size_t count, const Targets& to) {
  tell_of_elements(call);
  send_head_of_elements(to);
#pragma unroll 1
  for (unsigned v = 0; v < per_lane<T>; ++v) {
    const unsigned at = place_of<T>(v);
    if (at >= count) continue;
    const auto load = [&](unsigned member) {
      if (member == call.own) return input[at];
      const unsigned other = Layout::other(call.own, member);
      return value_at(z, from.head(other), from.row(other), v);
    };
    const T sum = any_order::sum_on_grid<T>(call.members, call.room, z, load);
    if (out != nullptr) out[at] = sum;
    to.each([&](RowHead*, std::byte* row) { reinterpret_cast<T*>(row)[at] = sum; });
  }
  return sizeof(RowHead) + joint_sum::row_bytes;
}

/// Adds up the thread's row of a unit, all of whose contributions have come, writes it and sends it
/// to those who get it. `q`: quanta of this member's own row, if `are_quanta`.
template <class T>
__device__ __forceinline__ unsigned sum_row(const SumCall& call, const Quantizer<T>& z,
                                            const Unit& unit, std::int32_t (&q)[per_lane<T>],
                                            bool are_quanta, const T* input, T* out,
                                            std::size_t count, const Targets& to,
                                            std::uint64_t& received) {
  constexpr auto limit = static_cast<std::int64_t>(codec::szp::Traits<T>::sum_limit);
  const Contributions from{call, unit.place(call)};
  const unsigned others = call.members - 1;
  RowHead next = from.head(0);
  for (unsigned other = 0; other < others; ++other) {
    const RowHead head = next;
    if (other + 1 < others) next = from.head(other + 1);
    received += bytes_of<per_lane<T>>(head);
    are_quanta = are_quanta && head.bits != joint_sum::as_elements;
    if (are_quanta) add_row(head, from.row(other), q);
  }
  if constexpr (sizeof(T) == 4) {
    bool are_sums = true;
#pragma unroll
    for (unsigned v = 0; v < per_lane<T>; ++v)
      are_sums = are_sums && q[v] >= -limit && q[v] < limit;
    are_quanta = are_quanta && __all_sync(~0u, are_sums) != 0;
  }
  if (!are_quanta) return sum_elements(call, z, from, input, out, count, to);
  if (out != nullptr) {
    T sums[per_lane<T>];
#pragma unroll
    for (unsigned v = 0; v < per_lane<T>; ++v) {
      sums[v] = any_order::multiply(static_cast<T>(q[v]), z.step);
    }
    store_row(out, count, sums);
  }
  return to.number() > 0 ? send_quanta(to, q) : 0;
}

/// One member's elements, combined with those of the members before.
template <class T, unsigned number>
__device__ __forceinline__ void join_row(codec::Combine how, T (&have)[number],
                                         const T (&row)[number]) {
  const auto join = [&]<codec::Combine one>() {
#pragma unroll
    for (unsigned v = 0; v < number; ++v) have[v] = codec::combine<one>(have[v], row[v]);
  };
  switch (how) {
    case codec::Combine::min: return join.template operator()<codec::Combine::min>();
    case codec::Combine::max: return join.template operator()<codec::Combine::max>();
    case codec::Combine::prod: return join.template operator()<codec::Combine::prod>();
    default: return join.template operator()<codec::Combine::sum>();
  }
}

/// The same of elements as they are, in the order of the members who bring any. `x`: this member's
/// own.
template <class T>
__device__ __forceinline__ unsigned sum_in_order(const SumCall& call, const Unit& unit,
                                                 const T (&x)[per_lane<T>], T* out,
                                                 std::size_t count, const Targets& to,
                                                 std::uint64_t& received) {
  const Contributions from{call, unit.place(call)};
  T sums[per_lane<T>];
  const bool is_broadcast = call.is_broadcast<true>();
  const unsigned first = is_broadcast ? call.source : 0;
  const unsigned last = is_broadcast ? first : call.members - 1;
  for (unsigned member = first; member <= last; ++member) {
    std::uint32_t w[sizeof sums / 4];
    if (member == call.own) {
      memcpy(w, x, sizeof w);
    } else {
      load_words(from.row(Layout::other(call.own, member)), w);
      received += sizeof(RowHead) + joint_sum::row_bytes;
    }
    T row[per_lane<T>];
    memcpy(row, w, sizeof row);
    if (member == first) {
      memcpy(sums, row, sizeof sums);
    } else {
      join_row(call.how, sums, row);
    }
  }
  if (out != nullptr) store_row(out, count, sums);
  return to.number() > 0 ? send_elements(to, sums) : 0;
}

}  // namespace mpress::gpu
