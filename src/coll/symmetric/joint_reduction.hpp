// A reduction of data on a host's devices by one kernel a member, which waits on its device for
// those of the others (gpu::CollectiveQueue::combine_jointly()).
//
// Such kernels begin once all members have told that they are in the call, each with a device of
// its own; they fill no device, and none waits for long: what it has left undone then, because
// another member's device was busy, is given again by its host, which has looked whether that
// member still lives.
//
// States (docs/dev/symmetric-memory.md has them as a table):
// - offering, until all members have told whether they can;
// - combining: the kernel is under way, or was given again;
// - over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "coll/algorithms/symmetric_reduction.hpp"
#include "coll/call_here.hpp"
#include "coll/symmetric/joint_call.hpp"
#include "coll/symmetric/joint_kernel.hpp"
#include "coll/symmetric/joint_sum.hpp"
#include "core/devices.hpp"
#include "policy/linked.hpp"

namespace mpress::engine {

class JointReduction final : public JointCall {
 public:
  /// Of one that symmetric_reduction applies to, while no other of the team's is under way.
  explicit JointReduction(const CallHere& here);

  Offer offer() override;
  std::optional<Contribution> contribution(const Spec& spec) const override {
    if (!sum_) return std::nullopt;
    return Contribution{
        longest_contribution(reduction_, reduction_.input, parts_.rows, team_.rank()),
        spec_for(reduction_, spec, false)};
  }
  Answer accept(std::span<const std::uint64_t> told) override;
  bool advance() override;
  bool follow(StreamOrder* order) override {
    if (!sum_) kernel_.follow(order);
    return !sum_;
  }
  bool is_in_stream() const override { return kernel_.is_in_stream(); }

 private:
  using Ability = JointMemory::Ability;

  bool is_there();
  gpu::Event give(gpu::CollectiveQueue& queue, std::uint32_t number, bool again) const;
  auto giving() const {
    return [this](gpu::CollectiveQueue& queue, std::uint32_t number, bool again) {
      return give(queue, number, again);
    };
  }
  void end_sum();
  bool gets_results() const;
  bool combines(int member) const;
  std::size_t bytes_read(int by, int from) const;
  bool has_parts() const { return parts_.begins.size() > 2; }
  std::size_t width() const { return element_size(reduction_.type); }
  std::size_t bytes() const { return reduction_.count * width(); }
  bool is_brief() const;
  bool has_long_lines() const;

  const int root_;
  void* const program_results_;
  JointMemory& memory_;
  const Reduction reduction_;
  const SymmetricParts parts_;
  std::optional<JointSum> sum_;  ///< of what goes row by row
  int device_ = gpu::host;
  std::byte* results_ = nullptr;
  JointKernel kernel_;
};

}  // namespace mpress::engine
