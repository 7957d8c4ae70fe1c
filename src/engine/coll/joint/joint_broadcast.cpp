#include "engine/coll/joint/joint_broadcast.hpp"

#include <algorithm>

#include "core/staging.hpp"
#include "engine/coll/even_piece.hpp"
#include "gpu/joint_sum.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

/// Kernels move words, whatever they mean.
constexpr ElementType word = ElementType::f32;
constexpr std::size_t word_bytes = 4;

/// Parts of all but the root, about even, in whole units.
std::vector<std::int64_t> parts_of(std::size_t bytes, int ranks, int root) {
  const std::size_t words = bytes / word_bytes;
  const auto owners = static_cast<std::size_t>(ranks - 1);
  const std::size_t even = even_piece(words, owners, gpu::joint_sum::unit_elements(word_bytes));
  std::vector<std::int64_t> begins{0};
  std::size_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != root) end = std::min(words, end + even);
    begins.push_back(static_cast<std::int64_t>(end));
  }
  return begins;
}

}  // namespace

bool JointBroadcast::is_apt(const Collective& call, const Operands& operands, std::size_t bytes,
                            Context& context) {
  const int ranks = context.size();
  if (call.family != Family::bcast || ranks < 2 || bytes == 0 || bytes % word_bytes != 0) {
    return false;
  }
  return reach_of(context).broadcasts_in_rows && context.agreements().can_gather(words) &&
         JointSum::is_apt(context, word, parts_of(bytes, ranks, operands.root));
}

JointBroadcast::JointBroadcast(Job& job, const Collective& call, const Operands& operands,
                               std::size_t bytes, Context& context)
    : JointCall(job, call, context),
      operands_(operands),
      begins_(parts_of(bytes, context.size(), operands.root)) {
  sum_.emplace(job, context, JointMemories::of(job, context).raw_sums, word, begins_,
               JointSum::broadcast_of(context.size(), operands.root), codec::Combine::replace);
}

std::optional<Contribution> JointBroadcast::contribution(const Spec& spec) const {
  if (!is_root()) return std::nullopt;
  return Contribution{part_of(operands_.receive, operands_.receive.reads, 0), spec};
}

JointBroadcast::Told JointBroadcast::offer() {
  const Blocks& blocks = is_root() ? operands_.receive.reads : operands_.receive.writes;
  const auto type = blocks.number() > 0 ? mpi::type_info(blocks[0].type) : nullptr;
  auto* const data = static_cast<std::byte*>(const_cast<void*>(operands_.receive.buffer));
  const bool is_whole = type && type->contiguous && blocks[0].offset == 0 &&
                        reinterpret_cast<std::uintptr_t>(data) % word_bytes == 0;
  const int device = is_whole ? device_of(job_, data, *type) : gpu::host;
  if (device == gpu::host) return {};
  return sum_->offer(device, is_root() ? data : nullptr, is_root() ? nullptr : data);
}

JointAnswer JointBroadcast::accept(std::span<const std::uint64_t> told) {
  return sum_->accept_told(told, {});
}

bool JointBroadcast::advance() {
  if (!sum_) return true;
  if (!sum_->advance()) return false;
  code_ = sum_->code();
  count(
      sum_->way(), [&](int member) { return sum_->raw_bytes_to(member); },
      [&](int member) { return sum_->raw_bytes_from(member); });
  sum_.reset();
  return true;
}

}  // namespace mpress::engine
