#include "gpu/cuda/joint/joint_move.hpp"

#include <algorithm>
#include <cstdint>

#include "gpu/cuda/joint/await.cuh"
#include "gpu/cuda/joint/lines.cuh"
#include "gpu/cuda/tell.cuh"
#include "gpu/joint_move.hpp"

namespace mpress::gpu {
namespace {

namespace layout = joint_move;

constexpr unsigned threads = 512;

/// A JointMove as kernels have it.
struct Call {
  std::byte* memory[layout::most_members];
  std::uint64_t rooms[layout::most_members];
  JointMove::Outgoing sends[layout::most_members];
  JointMove::Incoming receives[layout::most_members];
  std::size_t slots_at;
  std::uint32_t* undone;
  std::uint32_t number;
  unsigned members;
  unsigned own;
  bool again;
  bool is_endless;
  bool is_shared;

  /// Of a block, from a member to another.
  __device__ std::byte* slot(unsigned from, unsigned to) const {
    const unsigned at = is_shared ? from : to;
    return memory[at] + layout::slot_at(slots_at, from, rooms[at]);
  }
  __device__ const std::uint32_t* stop() const { return is_endless ? undone : nullptr; }
};

// What travels in lines.

using Line = DenseLine<1>;
constexpr std::size_t payload = sizeof(Line);

__device__ bool are_words(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(std::uint32_t) == 0;
}

/// Line `i` of a block, as far as there is any of it.
__device__ Line line_of(const JointMove::Outgoing& block, std::size_t i) {
  Line line{};
  const auto* const from = static_cast<const std::byte*>(block.from) + i * payload;
  if ((i + 1) * payload <= block.bytes && are_words(from)) {
#pragma unroll
    for (unsigned k = 0; k < Line::words; ++k) {
      line.word[k] = reinterpret_cast<const std::uint32_t*>(from)[k];
    }
    return line;
  }
#pragma unroll
  for (unsigned k = 0; k < payload; ++k) {
    if (i * payload + k >= block.bytes) continue;
    line.word[k / 4] |= static_cast<std::uint32_t>(from[k]) << k % 4 * 8;
  }
  return line;
}

/// The opposite.
__device__ void put_line(const JointMove::Incoming& block, std::size_t i, const Line& line) {
  auto* const to = static_cast<std::byte*>(block.to) + i * payload;
  if ((i + 1) * payload <= block.bytes && are_words(to)) {
#pragma unroll
    for (unsigned k = 0; k < Line::words; ++k) {
      reinterpret_cast<std::uint32_t*>(to)[k] = line.word[k];
    }
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < payload; ++k) {
    if (i * payload + k < block.bytes) to[k] = static_cast<std::byte>(line.word[k / 4] >> k % 4 * 8);
  }
}

/// Line `i` of each block to those who get it, each member beginning with another.
__device__ void send_line(const Call& call, std::size_t i) {
  for (unsigned begin = 1; begin < call.members; begin += lines_ahead) {
    Line lines[lines_ahead];
    std::byte* to[lines_ahead];
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      const unsigned member = (call.own + begin + k) % call.members;
      to[k] = nullptr;
      if (begin + k >= call.members || i * payload >= call.sends[member].bytes) continue;
      to[k] = call.memory[member] + layout::block_lines(call.members).at(call.own) + i * Line::bytes;
      lines[k] = line_of(call.sends[member], i);
    }
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      if (to[k] != nullptr) lines[k].store(to[k], call.number);
    }
  }
}

/// Line `i` of all blocks that come. False where one did not.
__device__ bool receive_line(const Call& call, std::size_t i) {
  const Lines where = layout::block_lines(call.members);
  const std::byte* const own = call.memory[call.own] + i * Line::bytes;
  for (unsigned sender = 0; sender < call.members; sender += lines_ahead) {
    unsigned wanted = 0;
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      const unsigned from = sender + k;
      if (from < call.members && from != call.own && i * payload < call.receives[from].bytes) {
        wanted |= 1u << k;
      }
    }
    Line lines[lines_ahead];
    if (!await_lines(own + where.at(sender), where.of_member, wanted, call.number, call.stop(), lines)) {
      return false;
    }
#pragma unroll
    for (unsigned k = 0; k < lines_ahead; ++k) {
      if ((wanted >> k & 1) != 0) put_line(call.receives[sender + k], i, lines[k]);
    }
  }
  return true;
}

/// `lines`: of the longest block.
__global__ void __launch_bounds__(line_threads)
    move_lines_kernel(const __grid_constant__ Call call, std::size_t lines, const Tell tell) {
  const std::size_t stride = std::size_t{gridDim.x} * line_threads;
  const std::size_t first = std::size_t{blockIdx.x} * line_threads + threadIdx.x;
  for (std::size_t i = first; i < lines && !call.again; i += stride) send_line(call, i);
  const JointMove::Incoming& kept = call.receives[call.own];
  for (std::size_t i = first; i * payload < kept.bytes && kept.to != nullptr; i += stride) {
    put_line(kept, i, line_of(call.sends[call.own], i));
  }
  bool has_all = true;
  for (std::size_t i = first; i < lines && has_all; i += stride) has_all = receive_line(call, i);
  if (!has_all) leave_undone(call.undone);
  tell_if_last(tell, gridDim.x);
}

// What goes to slots, and flags that tell of it.

/// The thread block's share of a block of `bytes` bytes: sender and receiver find the same.
struct Share {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

__device__ Share share_of(std::size_t bytes) {
  const unsigned blocks = layout::blocks_for(bytes);
  if (bytes == 0 || blockIdx.x >= blocks) return {};
  const std::size_t begin = layout::share_at(bytes, 1, blocks, blockIdx.x);
  return {begin, layout::share_at(bytes, 1, blocks, blockIdx.x + 1) - begin};
}

/// By all threads of the thread block. Joint memory changes during a kernel: it is read past the
/// cache that does not see that.
template <class Word>
__device__ void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t words = bytes / sizeof(Word);
#pragma unroll 4
  for (std::size_t i = threadIdx.x; i < words; i += threads) {
    reinterpret_cast<Word*>(to)[i] = __ldcg(reinterpret_cast<const Word*>(from) + i);
  }
  for (std::size_t i = words * sizeof(Word) + threadIdx.x; i < bytes; i += threads) {
    to[i] = static_cast<std::byte>(__ldcg(reinterpret_cast<const unsigned char*>(from) + i));
  }
}

__device__ void copy_share(void* to, const void* from, const Share& share) {
  auto* const out = static_cast<std::byte*>(to) + share.begin;
  const auto* const in = static_cast<const std::byte*>(from) + share.begin;
  const auto ends = reinterpret_cast<std::uintptr_t>(out) | reinterpret_cast<std::uintptr_t>(in);
  if (ends % 16 == 0) {
    copy_words<uint4>(out, in, share.bytes);
  } else if (ends % 4 == 0) {
    copy_words<std::uint32_t>(out, in, share.bytes);
  } else {
    copy_words<unsigned char>(out, in, share.bytes);
  }
}

__global__ void __launch_bounds__(threads)
    move_kernel(const __grid_constant__ Call call, const Tell tell) {
  // Each begins with another member, so that no device is written to by all at once.
  bool is_stored = call.again;
  for (unsigned step = 1; step < call.members && !is_stored; ++step) {
    const unsigned member = (call.own + step) % call.members;
    const JointMove::Outgoing& block = call.sends[member];
    copy_share(call.slot(call.own, member), block.from, share_of(block.bytes));
    is_stored = call.is_shared && block.bytes > 0;
  }
  __syncthreads();
  const unsigned member = threadIdx.x;
  const bool is_other = member < call.members && member != call.own;
  if (is_other && !call.again && share_of(call.sends[member].bytes).bytes > 0) {
    __threadfence_system();
    set_flag(call.memory[member] + layout::flag_at(call.own, blockIdx.x), call.number);
  }
  const JointMove::Incoming& kept = call.receives[call.own];
  if (kept.to != nullptr) {
    copy_share(kept.to, call.sends[call.own].from, share_of(kept.bytes));
  }
  bool has_come = true;
  if (is_other && share_of(call.receives[member].bytes).bytes > 0) {
    const std::byte* const flag = call.memory[call.own] + layout::flag_at(member, blockIdx.x);
    has_come = await_flag(flag, call.number, call.stop());
  }
  if (__syncthreads_and(has_come) != 0) {
    for (unsigned step = 1; step < call.members; ++step) {
      const unsigned sender = (call.own + step) % call.members;
      const JointMove::Incoming& block = call.receives[sender];
      copy_share(block.to, call.slot(sender, call.own), share_of(block.bytes));
    }
  } else if (threadIdx.x == 0) {
    leave_undone(call.undone);
  }
  tell_if_last(tell, gridDim.x);
}

}  // namespace

cudaError_t move_jointly(const JointMove& move, std::uint32_t* undone, const Tell& tell,
                         cudaStream_t stream) {
  const std::size_t members = move.memory.size();
  if (members < 2 || members > layout::most_members || move.rooms.size() != members ||
      move.sends.size() != members || move.receives.size() != members) {
    return cudaErrorInvalidValue;
  }
  Call call{};
  std::copy(move.memory.begin(), move.memory.end(), call.memory);
  std::copy(move.rooms.begin(), move.rooms.end(), call.rooms);
  std::copy(move.sends.begin(), move.sends.end(), call.sends);
  std::copy(move.receives.begin(), move.receives.end(), call.receives);
  call.slots_at = layout::slots_at(static_cast<unsigned>(members), move.has_lines);
  call.undone = undone;
  call.number = move.call;
  call.members = static_cast<unsigned>(members);
  call.own = move.member;
  call.again = move.again;
  call.is_endless = move.is_endless;
  call.is_shared = move.is_shared;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < members; ++i) {
    longest = std::max<std::size_t>({longest, move.sends[i].bytes, move.receives[i].bytes});
  }
  if (move.in_lines) {
    const std::size_t lines = (longest + payload - 1) / payload;
    move_lines_kernel<<<line_blocks(lines), line_threads, 0, stream>>>(call, lines, tell);
  } else {
    move_kernel<<<layout::blocks_for(longest), threads, 0, stream>>>(call, tell);
  }
  return cudaGetLastError();
}

}  // namespace mpress::gpu
