// A reduction in two shots that is under way: what several of its phases share.
#pragma once

#include <cstddef>
#include <memory>

#include "core/devices.hpp"
#include "engine/coll/call_tag.hpp"
#include "engine/coll/contribution.hpp"
#include "engine/coll/reduce/bounded_coding.hpp"
#include "engine/coll/reduce/movement.hpp"
#include "engine/coll/reduce/own_range.hpp"
#include "engine/coll/reduce/reduction_task.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

/// The largest errors of what a member has encoded, by stage, where they are measured.
struct StageErrors {
  double contribution = 0, host_sum = 0, result = 0;
};

struct ReductionRun {
  explicit ReductionRun(const ReductionTask& task)
      : task(task), tag(task.team, task.served.tag), range(task.job) {}
  ReductionRun(const ReductionRun&) = delete;
  ReductionRun& operator=(const ReductionRun&) = delete;

  /// At each start, with the tag: finds where the contribution lies.
  void open();
  /// The device has no memory left: this rank combines on the host, as one does whose buffers lie
  /// there. Returns an error code of MPI's.
  int move_to_host();

  /// Memory of the device that the contribution lies on, or of the host; empty: it is short.
  memory::Buffer take(std::size_t bytes) const;
  /// Notes that as an error.
  memory::Buffer need(std::size_t bytes);

  /// Are elements at `data` aligned, and in memory of the device that the contribution lies on?
  bool lies_beside(const void* data) const;

  /// The longest that this rank gives to a piece of another's.
  Contribution longest_contribution() const;

  /// As Movement has them; of arrays that outlive it.
  std::unique_ptr<Movement> movement(bool shares, schedule::Op op, const Operand& send,
                                     const Operand& receive, schedule::Schedule schedule,
                                     const Coding* coding, OperandBlocks::Place place = {}) const;
  /// An exchange of `bytes` bytes of each member, which lie at `all` in the order of the ranks.
  std::unique_ptr<Movement> all_gather(void* all, std::size_t bytes) const;

  /// The first error is the call's.
  void note(int error) {
    if (code == MPI_SUCCESS) code = error;
  }
  void note(Status status);

  const ReductionTask& task;
  CallTag tag;
  const std::byte* input = nullptr;  ///< this rank's contribution
  int device = gpu::host;            ///< that it lies on: there pieces are combined
  memory::Buffer copy;               ///< of it: aligned, or on the host
  OwnRange range;                    ///< of it
  BoundedCoding agreed;              ///< of one without a bound, what is known beforehand
  StageErrors errors;                ///< of this rank
  int code = MPI_SUCCESS;
  bool is_awaited = false;

 private:
  int find_input();
  int use_copy(memory::Buffer made);
};

}  // namespace mpress::engine
