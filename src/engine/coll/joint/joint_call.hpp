// A call on data of a host's devices that one kernel a member makes, each of which waits on its
// device for those of the others. Members tell each other at each call whether they can
// (coll/route).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/coll/collective_operation.hpp"
#include "engine/coll/contribution.hpp"
#include "engine/coll/joint/joint_memory.hpp"
#include "mpi/job/context.hpp"
#include "policy/linked.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {

/// What kernels of a call of such a context reach; for the call whose turn it is.
inline const policy::Reach& reach_of(const Context& context) {
  return context.has_linked_devices() ? policy::linked : policy::by_host;
}

class JointCall : public CollectiveOperation {
 public:
  /// What a member tells the others: whether it can, its device, the routes to its memory, how much
  /// room that has, and of the call what they may differ in.
  static constexpr std::size_t words = 4 + JointMemory::words;
  using Told = std::array<std::uint64_t, words>;

  /// Before anything else. What it returns all members tell each other.
  virtual Told offer() = 0;

  /// What all have told, by rank. The same for all. Where it is accepted, the call is under way.
  virtual JointAnswer accept(std::span<const std::uint64_t> told) = 0;

  /// In the place of offer(), by a member that would rather encode what it brings: then the call
  /// goes as blocks, on all members.
  static constexpr Told told_to_encode() { return {encodes_bit}; }
  static bool is_to_be_encoded(std::span<const std::uint64_t> told) {
    for (std::size_t i = 0; i < told.size(); i += words) {
      if (told[i] & encodes_bit) return true;
    }
    return false;
  }

  /// This member's contribution, where it is long enough for codecs, to a call for which members
  /// agreed on `spec`; else empty.
  virtual std::optional<Contribution> contribution(const Spec& /*spec*/) const {
    return std::nullopt;
  }

  /// Before it is offered: its place in a stream, which outlives accept(). False where its kernel
  /// does not begin behind what that holds by itself, which has to be done first.
  virtual bool follow(StreamOrder*) { return false; }

  trace::Called called() const override {
    return {call_.op, static_cast<std::uint8_t>(schedule::Algorithm::one_kernel)};
  }
  int code() const override { return code_; }

  void start(FloatModes) override {}
  bool needs_host() const override { return false; }
  void await(bool) override {}
  bool wait_in_mpi() override { return false; }
  double bound() const override { return 0; }

 protected:
  /// All of these outlive it.
  JointCall(Job& job, const Collective& call, Context& context)
      : job_(job), call_(call), context_(context) {}

  /// Of a call that went well, by a link: counts the bytes that each other member got, to(member),
  /// and that came of it, from(member).
  template <class To, class From>
  void count(trace::Way way, To to, From from) const {
    for (int member = 0; member < context_.size() && code_ == MPI_SUCCESS; ++member) {
      if (member == context_.rank()) continue;
      count_by_kernel(job_, called(), way, context_.world_rank(member), to(member), from(member));
    }
  }

  Job& job_;
  const Collective& call_;
  Context& context_;
  int code_ = MPI_SUCCESS;

 private:
  /// Of the first word, beside those of JointMemory.
  static constexpr std::uint64_t encodes_bit = JointMemory::left_bit << 1;
};

}  // namespace mpress::engine
