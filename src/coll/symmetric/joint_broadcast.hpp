// A long broadcast of data on linked devices by one kernel a member
// (gpu::CollectiveQueue::sum_jointly()): the root stores a part of it in each other member's
// memory, who passes it on to the others, unit by unit while the next ones come. So each link
// brings all of it once. Nothing is encoded.
//
// Such kernels begin, wait and are given again as those of joint_reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "coll/call_here.hpp"
#include "coll/symmetric/joint_call.hpp"
#include "coll/symmetric/joint_sum.hpp"

namespace mpress::engine {

class JointBroadcast final : public JointCall {
 public:
  /// Of one that symmetric_broadcast applies to, while no other of the team's is under way.
  explicit JointBroadcast(const CallHere& here);

  Offer offer() override;
  std::optional<Contribution> contribution(const Spec& spec) const override;
  Answer accept(std::span<const std::uint64_t> told) override;
  bool advance() override;

 private:
  bool is_root() const { return team_.rank() == root_; }

  const int root_;
  const BlockData data_;
  const std::vector<std::int64_t> begins_;  ///< of parts, in words
  std::optional<JointSum> sum_;             ///< until it is over
};

}  // namespace mpress::engine
