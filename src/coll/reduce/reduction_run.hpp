// A reduction in two shots that is under way: what several of its phases share.
#pragma once

#include <cstddef>
#include <memory>

#include "coll/blocks/contribution.hpp"
#include "coll/call_tag.hpp"
#include "coll/reduce/bounded_coding.hpp"
#include "coll/reduce/movement.hpp"
#include "coll/reduce/own_range.hpp"
#include "coll/reduce/reduction_task.hpp"
#include "core/devices.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

/// The largest errors of what a member has encoded, by stage, where they are measured.
struct StageErrors {
  double contribution = 0, host_sum = 0, result = 0;
};

struct ReductionRun {
  explicit ReductionRun(const ReductionTask& task)
      : task(task), tag(task.team, task.served.tag), range(task.messaging) {}
  ReductionRun(const ReductionRun&) = delete;
  ReductionRun& operator=(const ReductionRun&) = delete;

  /// At each start, with the tag: finds where the contribution lies.
  void open();
  /// The device has no memory left: this rank combines on the host, as one does whose buffers lie
  /// there. Returns why it cannot.
  Status move_to_host();

  /// Memory of the device that the contribution lies on, or of the host; empty: it is short.
  memory::Buffer take(std::size_t bytes) const;
  /// Notes that as an error.
  memory::Buffer need(std::size_t bytes);

  /// Are elements at `data` aligned, and in memory of the device that the contribution lies on?
  bool lies_beside(const void* data) const;

  /// The longest that this rank gives to a piece of another's.
  Contribution longest_contribution() const;

  /// A movement between the members; see Movement and ElementBlocks.
  std::unique_ptr<Movement> movement(bool shares, schedule::Op op, const ElementSpans& sent,
                                     const ElementSpans& received, schedule::Schedule schedule,
                                     const Coding* coding, ElementBlocks::Place place = {}) const;
  /// An exchange of `bytes` bytes of each member, which lie at `all` in the order of the ranks.
  std::unique_ptr<Movement> all_gather(void* all, std::size_t bytes) const;

  /// The first failure is the call's.
  void note(Status found) {
    if (status.is_ok()) status = found;
  }

  const ReductionTask& task;
  CallTag tag;
  const std::byte* input = nullptr;  ///< this rank's contribution
  int device = gpu::host;            ///< that it lies on: there pieces are combined
  memory::Buffer copy;               ///< of it: aligned, or on the host
  OwnRange range;                    ///< of it
  BoundedCoding agreed;              ///< of one without a bound, what is known beforehand
  StageErrors errors;                ///< of this rank
  Status status;
  bool is_awaited = false;

 private:
  std::unique_ptr<Movement> begin(bool shares, std::unique_ptr<const BlockMap> blocks,
                                  schedule::Schedule schedule, const Coding* coding) const;
  Status find_input();
  Status use_copy(memory::Buffer made);
};

}  // namespace mpress::engine
