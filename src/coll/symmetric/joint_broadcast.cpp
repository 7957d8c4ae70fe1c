#include "coll/symmetric/joint_broadcast.hpp"

#include <algorithm>

#include "coll/algorithms/symmetric_broadcast.hpp"
#include "core/staging.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
JointBroadcast::JointBroadcast(const CallHere& here)
    : JointCall(here.messaging, here.agreed.call, here.team),
      root_(here.agreed.root),
      data_((is_root() ? here.sent : here.received)[0]),
      begins_(broadcast_parts(here.agreed)) {
  sum_.emplace(messaging_, team_, JointMemories::of(messaging_, team_).raw_sums, broadcast_word,
               begins_, JointSum::broadcast_of(team_.size(), root_), codec::Combine::replace);
}

std::optional<Contribution> JointBroadcast::contribution(const Spec& spec) const {
  if (!is_root()) return std::nullopt;
  return Contribution{data_, spec};
}

JointBroadcast::Offer JointBroadcast::offer() {
  auto* const data = static_cast<std::byte*>(data_.data);
  const bool is_whole = data_.layout && data_.layout->contiguous &&
                        reinterpret_cast<std::uintptr_t>(data) % broadcast_word_bytes == 0;
  const int device = is_whole ? device_of(messaging_, data, *data_.layout) : gpu::host;
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
