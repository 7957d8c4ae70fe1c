// Blocks of data on a host's devices that one kernel a member brings to all others
// (gpu::CollectiveQueue::move_jointly()): short ones, of which messages would take longer to tell
// than to bring. Nothing is encoded. Where counts are a member's own, each tells how long its
// longest block is, and all find whether those of all are short.
//
// Such kernels begin, wait and are given again as those of joint_reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coll/blocks/call_blocks.hpp"
#include "coll/call_here.hpp"
#include "coll/symmetric/joint_call.hpp"
#include "coll/symmetric/joint_kernel.hpp"
#include "core/devices.hpp"

namespace mpress::engine {

class JointMovement final : public JointCall {
 public:
  /// Of one that symmetric_move applies to, while no other of the team's is under way.
  explicit JointMovement(const CallHere& here);

  Offer offer() override;
  Answer accept(std::span<const std::uint64_t> told) override;
  bool advance() override;
  bool follow(StreamOrder* order) override {
    kernel_.follow(order);
    return true;
  }
  bool is_in_stream() const override { return kernel_.is_in_stream(); }

 private:
  /// Does what a member brings lie in its own memory, for all others to read? Across a bus it goes
  /// once, then.
  bool is_shared() const {
    return memory_.is_on_host() && (op_ == schedule::Op::bcast || op_ == schedule::Op::allgather);
  }
  bool has_lines() const { return !memory_.is_on_host(); }
  bool is_there();
  int device_of_buffers() const;
  std::size_t longest() const;
  std::size_t kept() const;
  std::uint64_t balance() const;
  bool lies_here(const BlockData& data, std::shared_ptr<const Layout>& known);
  BlockData outgoing(int to) const;
  BlockData incoming(int from) const;
  gpu::Event give(gpu::CollectiveQueue& queue, std::uint32_t number, bool again) const;
  auto giving() const {
    return [this](gpu::CollectiveQueue& queue, std::uint32_t number, bool again) {
      return give(queue, number, again);
    };
  }

  const int root_;
  const BlockList sent_, received_;
  const void* const send_buffer_;
  const void* const receive_buffer_;
  JointMemory& memory_;
  const std::size_t least_encoded_;  ///< bytes of a block that this member may encode
  const schedule::Op op_;
  CallBlocks blocks_;
  std::vector<gpu::JointMove::Outgoing> sends_;     ///< by member
  std::vector<gpu::JointMove::Incoming> receives_;  ///< the same
  std::vector<std::uint64_t> rooms_;                ///< the same
  bool in_lines_ = false;
  int device_ = gpu::host;
  JointKernel kernel_;
};

}  // namespace mpress::engine
