// A call on data of linked devices that one kernel a member makes, each of which waits on its
// device for those of the others. Members tell each other at each call whether they can
// (coll/route).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/coll/collective_operation.hpp"
#include "engine/coll/joint_memory.hpp"

namespace mpress::engine {

class JointCall : public CollectiveOperation {
 public:
  /// What a member tells the others: whether it can, its device, the routes to its memory, and how
  /// much room that has.
  static constexpr std::size_t words = 3 + JointMemory::words;
  using Told = std::array<std::uint64_t, words>;

  /// Before anything else. What it returns all members tell each other.
  virtual Told offer() = 0;

  /// What all have told, by rank. The same for all. Where it is accepted, the call is under way.
  virtual JointAnswer accept(std::span<const std::uint64_t> told) = 0;

  void start() override {}
  bool needs_host() const override { return false; }
  void await(bool) override {}
  void wait_in_mpi() override {}
  double bound() const override { return 0; }
};

}  // namespace mpress::engine
