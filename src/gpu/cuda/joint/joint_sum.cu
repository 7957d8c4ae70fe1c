#include "gpu/cuda/joint/joint_sum.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "codec/cuda/support.cuh"
#include "codec/float_environment.hpp"
#include "gpu/cuda/joint/await.cuh"
#include "gpu/cuda/joint/joint_add.cuh"
#include "gpu/cuda/joint/joint_range.cuh"
#include "gpu/cuda/joint/joint_rows.cuh"
#include "gpu/cuda/joint/joint_units.cuh"
#include "gpu/cuda/tell.cuh"

namespace mpress::gpu {
namespace {

namespace joint = joint_sum;

constexpr unsigned threads = joint::rows * 32;
/// Half of a multiprocessor's threads: a program's kernels have room beside.
constexpr unsigned residency = 1024 / threads;
/// Thread blocks that fill a bus with elements as they are: the rest of the device is the program's.
constexpr unsigned most_across_bus = 64;

/// By all threads of a block, each warp of which may have missed something before: has none, and
/// are there contributions to a unit of all others?
__device__ __forceinline__ bool await_contributions(const SumCall& call, const Unit& unit,
                                                    bool has_all) {
  if (has_all && threadIdx.x + 1 < call.members) {
    const std::uint32_t slot = call.contribution_from[threadIdx.x] + unit.place(call);
    has_all = await_flag(call.flag_of(call.own, slot), unit.flag(call));
  }
  return __syncthreads_and(has_all) != 0;
}

/// By all warps of a block: are there results of all units that it has in a round, of which this
/// member is told? Each waits for itself; but across a bus, where looks are in each other's way, one
/// looks for all (two H200s, MPI_Allreduce of 4 MB: 34 us, with flags apart, too; before 208).
template <class T>
__device__ __forceinline__ bool await_results(const SumCall& call, std::uint32_t round) {
  const std::byte* flag = nullptr;
  std::uint32_t wanted = 0;
  Unit unit;
  unsigned lane = 0;
  for (UnitsOfOthers units(call, round); units.next<T>(unit); ++lane) {
    if (threadIdx.x % 32 == lane && (call.is_reader(call.own) || is_used_again<T>(call, unit))) {
      flag = call.flag_of(call.own, call.result_from[unit.part] + unit.place(call));
      wanted = unit.flag(call);
    }
  }
  if (call.is_on_host) {
    const bool looks = flag != nullptr && threadIdx.x < 32;
    return __syncthreads_and(!looks || await_flag(flag, wanted)) != 0;
  }
  const bool have_come = __all_sync(~0u, flag == nullptr || await_flag(flag, wanted)) != 0;
  __syncwarp();  // a vote orders no memory
  return have_come;
}

/// Behind what all threads of a block have written: tells owners of its contributions of a round,
/// and others of the unit that it has added up, if any. A fence waits until all of that is there,
/// which takes long: there is one for all, by one warp, while the others go on. A flag that only
/// says that something was read needs none: what was read has been stored elsewhere before the
/// barrier, so that reading it is over.
template <bool as_they_are, class T>
__device__ void tell_of(const SumCall& call, std::uint32_t round, const Unit* added_up) {
  constexpr unsigned first_reader = 16;  // of the lanes
  static_assert(joint::most_members <= 16 && first_reader + joint::most_members <= 32);
  if (threadIdx.x / 32 != round % joint::rows) return;
  const unsigned lane = threadIdx.x % 32;
  std::byte* flag = nullptr;
  std::uint32_t value = 0;
  bool has_data = call.brings<as_they_are>(call.own);
  Unit unit;
  unsigned at = 0;
  for (UnitsOfOthers units(call, round); units.next<T>(unit); ++at) {
    if (lane != at) continue;
    flag = Targets::owner(call, unit).flag_of(unit.part);
    value = unit.flag(call);
  }
  if (added_up != nullptr && lane >= first_reader && lane - first_reader < call.members) {
    const Targets to = Targets::readers<T>(call, *added_up);
    flag = to.flag_of(lane - first_reader);
    value = added_up->flag(call);
    has_data = to.has(lane - first_reader);
  }
  if (flag == nullptr) return;
  if (has_data) __threadfence_system();
  set_flag(flag, value);
}

/// Who brings nothing to a broadcast sends nothing, but tells owners all the same: they must not
/// pass on the next lap while what they passed on of this one is still collected.
template <bool as_they_are, class T>
__device__ void contribute(const SumCall& call, const Quantizer<T>& z, std::uint32_t round,
                           Traffic& traffic, WarpRange<T>& range) {
  if (!call.brings<as_they_are>(call.own)) return;
  const auto* const input = static_cast<const T*>(call.input);
  const auto load = [&](const Unit& unit, T(&x)[per_lane<T>]) {
    load_row(input + call.begins[unit.part] + row_begin<T>(unit), row_count<T>(call, unit), x);
  };
  UnitsOfOthers units(call, round);
  Unit unit, next;
  bool is_there = units.next<T>(unit);
  T x[per_lane<T>];
  if (is_there) load(unit, x);
  while (is_there) {
    const Targets to = Targets::owner(call, unit);
    const std::size_t count = row_count<T>(call, unit);
    const bool has_row = count > 0;
    std::int32_t q[per_lane<T>];
    bool are_quanta = false;
    if constexpr (!as_they_are) {
      if (call.finds_range) range.take(x, count);
      are_quanta = quantize_row(z, call.quick, x, q);
    }
    if (has_row && !are_quanta) traffic.sent += send_elements(to, x);
    // The next row comes while this one is packed.
    is_there = units.next<T>(next);
    if (is_there) load(next, x);
    if (has_row && are_quanta) traffic.sent += send_quanta(to, q);
    unit = next;
  }
}

/// The unit of its own member's part that a thread block adds up in a round, if it has one.
template <class T>
__device__ bool own_unit(const SumCall& call, std::uint32_t round, Unit& unit) {
  const std::uint32_t first = round * call.per_round;
  const std::uint32_t place = Unit{0, first}.place(call);
  const std::uint32_t from_first = own_from(call, place) - place;
  unit = {call.own, first + from_first};
  return from_first < call.per_round &&
         unit.number < joint::units_of(call.counts[call.own], sizeof(T));
}

/// By all threads of a block, each warp of which may have missed something before: `has_all`. Adds
/// up a unit and sends it to its readers; false where that could not be.
template <bool as_they_are, class T>
__device__ bool add_up(const SumCall& call, const Quantizer<T>& z, const Unit& unit, bool has_all,
                       Traffic& traffic, WarpRange<T>& range) {
  const auto* const input = static_cast<const T*>(call.input) + call.begins[call.own];
  const bool gets_own = call.readers == 0 || call.is_reader(call.own);
  T* const out =
      gets_own ? static_cast<T*>(call.out) + (call.readers ? call.begins[call.own] : 0) : nullptr;
  const Targets to = Targets::readers<T>(call, unit);
  const std::size_t begin = row_begin<T>(unit), count = row_count<T>(call, unit);
  T x[per_lane<T>];
  if (!call.is_broadcast<as_they_are>()) load_row(input + begin, count, x);
  std::int32_t q[per_lane<T>];
  bool are_quanta = false;
  if constexpr (!as_they_are) {
    if (call.finds_range) range.take(x, count);
    are_quanta = quantize_row(z, call.quick, x, q);
  }
  if (!await_contributions(call, unit, has_all)) return false;
  if (count == 0) return true;
  T* const row = out ? out + begin : nullptr;
  const unsigned bytes = as_they_are ? sum_in_order(call, unit, x, row, count, to, traffic.received)
                                     : sum_row(call, z, unit, q, are_quanta, input + begin, row,
                                               count, to, traffic.received);
  traffic.sent += std::uint64_t{bytes} * to.number();
  return true;
}

/// By all warps of a block; false where results did not come. Who gets none waits to be told of
/// them: others must have done with what it brought before it brings the same places more.
template <bool as_they_are, class T>
__device__ bool collect(const SumCall& call, const Quantizer<T>& z, std::uint32_t round,
                        Traffic& traffic) {
  if (!await_results<T>(call, round)) return false;
  if (!call.is_reader(call.own)) return true;
  auto* const out = static_cast<T*>(call.out);
  Unit unit;
  for (UnitsOfOthers units(call, round); units.next<T>(unit);) {
    const std::size_t count = row_count<T>(call, unit);
    if (count == 0) continue;
    std::byte* const results = call.results_of[unit.part];
    const RowHead head = load_head(SumCall::head_in(results, unit.place(call)));
    const std::byte* const row = SumCall::row_in(results, unit.place(call));
    traffic.received += bytes_of<per_lane<T>>(head);
    T x[per_lane<T>];
    if (head.bits == joint::as_elements) {
      if constexpr (!as_they_are) tell_of_elements(call);
      std::uint32_t w[joint::row_bytes / 32 / 4];
      load_words(row, w);
      memcpy(x, w, sizeof x);
    } else {
      std::int32_t q[per_lane<T>] = {};
      add_row(head, row, q);
#pragma unroll
      for (unsigned v = 0; v < per_lane<T>; ++v) {
        x[v] = any_order::multiply(static_cast<T>(q[v]), z.step);
      }
    }
    store_row(out + call.begins[unit.part] + row_begin<T>(unit), count, x);
  }
  return true;
}

/// Where a thread block leaves off, as something did not come: at a round, or when it has told of
/// one and collects.
struct Stage {
  std::uint32_t of_round;
  bool collects;

  static __device__ Stage load(std::uint32_t word) { return {word / 2, word % 2 != 0}; }
  __device__ std::uint32_t word() const { return 2 * of_round + (collects ? 1 : 0); }
};

/// In a round a thread block sends its contributions to units of the other members' parts, adds up
/// one of its own member's part of the round before, if it has one there, and collects results of
/// the one before that: what it waits for has had time to come, and links are busy while memory is.
/// Who gets none waits for them where the ring has it wait.
/// Where something does not come it leaves off, and goes on there when the work is given again. So
/// nothing is added up twice: results may have taken the place of what its member brought.
template <bool as_they_are, class T>
__global__ void __launch_bounds__(threads, residency)
    sum_kernel(const __grid_constant__ SumCall call, const Quantizer<T> z, const Tell tell) {
  Traffic traffic;
  __shared__ WarpRange<T> ranges[joint::rows];
  WarpRange<T>& range = ranges[threadIdx.x / 32];
  if (threadIdx.x % 32 == 0) range = {};
  const std::uint32_t rounds =
      (call.longest + call.per_round - 1) / call.per_round + (call.is_reader(call.own) ? 2 : 1);
  std::uint32_t& left_off = call.left_off[blockIdx.x];
  Stage stage = call.again ? Stage::load(left_off) : Stage{0, false};
  bool has_collected = true;  // this warp
  bool is_undone = false;     // by this thread block
#pragma unroll 1
  for (; stage.of_round < rounds; ++stage.of_round) {
    if (!stage.collects) {
      if (has_collected) contribute<as_they_are>(call, z, stage.of_round, traffic, range);
      Unit unit;
      const bool has_unit = stage.of_round >= 1 && own_unit<T>(call, stage.of_round - 1, unit);
      const bool is_added_up =
          has_unit && add_up<as_they_are>(call, z, unit, has_collected, traffic, range);
      if (__syncthreads_and(has_collected) == 0) break;
      is_undone = has_unit && !is_added_up;
      if (is_undone) break;
      tell_of<as_they_are, T>(call, stage.of_round, has_unit ? &unit : nullptr);
    }
    stage.collects = false;
    if (stage.of_round >= call.lag) {
      has_collected = collect<as_they_are>(call, z, stage.of_round - call.lag, traffic);
    }
  }
  if (__syncthreads_and(has_collected) == 0) {
    stage = {stage.of_round - 1, true};
    is_undone = true;
  }
  if (threadIdx.x == 0) left_off = stage.word();
  unsigned long long* const sum = tell.counters->sum;
  if (threadIdx.x % 32 == 0) {
    atomicAdd(sum, traffic.sent);
    atomicAdd(sum + 1, traffic.received);
  }
  if (call.finds_range) join_ranges(ranges, *tell.counters);
  if (is_undone && threadIdx.x == 0) leave_undone(&call.tally->undone);
  tell_if_last(tell, gridDim.x, [&] {
    *const_cast<volatile std::uint64_t*>(&call.tally->sent) = atomicExch(sum, 0);
    *const_cast<volatile std::uint64_t*>(&call.tally->received) = atomicExch(sum + 1, 0);
    if (call.finds_range) tell_range<T>(*tell.counters, call.tally->extent);
  });
}

/// `room`: units of a part that all members' memory has room for.
template <class T>
cudaError_t sum_as(SumCall& call, const codec::Grid& grid, std::uint32_t room,
                   const Tell& tell, cudaStream_t stream) {
  Quantizer<T> z{};
  if (grid.bound != 0 && !codec::szp::quantizer_of(grid, z)) return cudaErrorInvalidValue;
  call.quick = compute([&] { return any_order::quick_reach(z, joint::reach - 1); });
  const std::uint64_t own = joint::units_of(call.counts[call.own], sizeof(T));
  std::uint64_t others = 0, longest = 0;
  for (unsigned member = 0; member < call.members; ++member) {
    const std::uint64_t units = joint::units_of(call.counts[member], sizeof(T));
    if (member != call.own) others += units;
    longest = std::max(longest, units);
  }
  call.longest = static_cast<std::uint32_t>(longest);
  const std::uint64_t most_blocks = std::min<std::uint64_t>(
      call.is_on_host && grid.bound == 0 ? most_across_bus : joint::most_blocks,
      std::uint64_t{residency} * codec::cuda::multiprocessors());
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::uint64_t>(std::max(own, others), 1, most_blocks));
  // Sums as they are took a tenth longer so where one part is empty (MPI_Reduce of 256 MB, 4
  // H100s), and those in quanta a twentieth less.
  call.takes_turns = grid.bound != 0 || call.source >= 0;
  call.by_turn = Divisor(std::max(blocks / (call.members - 1), 1u));
  call.by_blocks = Divisor(blocks);
  // The sooner the second round begins, the more links have to do at once. A quarter for sums as
  // they are, which links bind: MPI_Reduce of 256 MB in 1030 us for 1145. In quanta half was best
  // for all but the smoothest data.
  call.per_round = std::max(blocks / (grid.bound == 0 ? 4 : 2), 1u);
  call.lap_bits = 31;
  const bool collects = (call.readers >> call.own & 1) != 0;
  call.lag = collects ? 2 : UINT32_MAX;
  if (joint::laps_of(call.longest, room) > 1) {
    const std::uint32_t ring = joint::ring_of(call.longest, room);
    if (ring < joint::rounds_a_lap) return cudaErrorInvalidValue;
    call.lap_bits = static_cast<std::uint32_t>(std::countr_zero(ring));
    call.per_round = std::min(std::bit_floor(call.per_round), ring / joint::rounds_a_lap);
    if (!collects) call.lag = ring / call.per_round - 1;
  }
  const auto kernel = grid.bound == 0 ? sum_kernel<true, T> : sum_kernel<false, T>;
  kernel<<<blocks, threads, 0, stream>>>(call, z, tell);
  return cudaGetLastError();
}

}  // namespace

cudaError_t sum_jointly(ElementType type, const JointSum& sum, JointSum::Tally* tally,
                        const Tell& tell, cudaStream_t stream) {
  const std::size_t members = sum.memory.size();
  if (members < 2 || members > joint::most_members || sum.begins.size() != members ||
      sum.counts.size() != members || sum.units.size() != members ||
      (sum.source >= 0 && sum.grid.bound != 0) ||
      (sum.how != codec::Combine::sum && sum.grid.bound != 0)) {
    return cudaErrorInvalidValue;
  }
  SumCall call{};
  std::copy(sum.memory.begin(), sum.memory.end(), call.memory);
  const auto layout_of = [&](unsigned member) -> Layout {
    return {static_cast<std::uint32_t>(members), sum.units[member], sum.is_on_host};
  };
  const Layout own = layout_of(sum.member);
  const auto first = [](std::size_t slot) { return static_cast<std::uint32_t>(slot); };
  for (unsigned member = 0; member < members; ++member) {
    const Layout layout = layout_of(member);
    call.slots_at[member] = sum.memory[member] + layout.slots_at();
    if (member == sum.member) continue;
    const std::uint32_t as_other = Layout::other(member, sum.member);
    const std::uint32_t other = Layout::other(sum.member, member);
    call.contribution_to[member] = first(layout.contribution(as_other, 0));
    call.result_to[member] = first(layout.result(as_other, 0));
    call.contribution_from[other] = first(own.contribution(other, 0));
    call.result_from[member] = first(own.result(other, 0));
    call.results_of[member] =
        sum.is_on_host
            ? sum.memory[member] + layout.slot_at(layout.own_result(0))
            : sum.memory[sum.member] + own.slot_at(own.result(other, 0));
  }
  call.result_to[sum.member] = first(own.own_result(0));
  call.left_off = reinterpret_cast<std::uint32_t*>(sum.memory[sum.member] + own.left_off_at());
  call.by_others = Divisor(static_cast<std::uint32_t>(members - 1));
  std::copy(sum.begins.begin(), sum.begins.end(), call.begins);
  std::copy(sum.counts.begin(), sum.counts.end(), call.counts);
  call.input = sum.input;
  call.out = sum.out;
  call.tally = tally;
  call.number = sum.call;
  call.flag_bytes = static_cast<std::uint32_t>(own.flag_bytes());
  call.readers = sum.readers;
  call.members = static_cast<unsigned>(members);
  call.own = sum.member;
  call.source = sum.source;
  call.room = any_order::room_for(members);
  call.how = sum.how;
  call.is_on_host = sum.is_on_host;
  call.again = sum.again;
  call.tells_of_elements = sum.grid.reach > 0;
  call.finds_range = sum.finds_range;
  const std::uint32_t room = *std::min_element(sum.units.begin(), sum.units.end());
  return type == ElementType::f32 ? sum_as<float>(call, sum.grid, room, tell, stream)
                                  : sum_as<double>(call, sum.grid, room, tell, stream);
}

}  // namespace mpress::gpu
