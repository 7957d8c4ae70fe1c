#include "mpi/collectives/joint/joint_broadcast.hpp"

#include <algorithm>

#include "coll/algorithms/symmetric_broadcast.hpp"
#include "core/staging.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
JointBroadcast::JointBroadcast(Job& job, const Collective& call, const Operands& operands,
                               const AgreedCall& agreed, Team& team)
    : JointCall(job, call, team), operands_(operands), begins_(broadcast_parts(agreed)) {
  sum_.emplace(job, team, JointMemories::of(job, team).raw_sums, broadcast_word, begins_,
               JointSum::broadcast_of(team.size(), operands.root), codec::Combine::replace);
}

std::optional<Contribution> JointBroadcast::contribution(const Spec& spec) const {
  if (!is_root()) return std::nullopt;
  return Contribution{data_of(operands_.receive, operands_.receive.reads, 0), spec};
}

JointBroadcast::Offer JointBroadcast::offer() {
  const Blocks& blocks = is_root() ? operands_.receive.reads : operands_.receive.writes;
  const auto type = blocks.number() > 0 ? mpi::type_info(blocks[0].type) : nullptr;
  auto* const data = static_cast<std::byte*>(const_cast<void*>(operands_.receive.buffer));
  const bool is_whole = type && type->contiguous && blocks[0].offset == 0 &&
                        reinterpret_cast<std::uintptr_t>(data) % broadcast_word_bytes == 0;
  const int device = is_whole ? device_of(job_, data, *type) : gpu::host;
  if (device == gpu::host) return {};
  return sum_->offer(device, is_root() ? data : nullptr, is_root() ? nullptr : data);
}

Answer JointBroadcast::accept(std::span<const std::uint64_t> told) {
  return sum_->accept(told, {});
}

bool JointBroadcast::advance() {
  if (!sum_) return true;
  if (!sum_->advance()) return false;
  status_ = sum_->status();
  count(
      sum_->way(), [&](int member) { return sum_->raw_bytes_to(member); },
      [&](int member) { return sum_->raw_bytes_from(member); });
  sum_.reset();
  return true;
}

}  // namespace mpress::engine
