#include "coll/reduce/reduction_run.hpp"

#include <utility>

#include "core/plain_layout.hpp"
#include "core/staging.hpp"
#include "message/messaging.hpp"
#include "schedule/moves/bruck.hpp"

namespace mpress::engine {
namespace {

bool is_aligned(const void* data, std::size_t width) {
  return reinterpret_cast<std::uintptr_t>(data) % width == 0;
}

}  // namespace

void ReductionRun::open() {
  agreed = {};
  agreed.coding = Coding{.spec = task.spec, .is_decided = task.served.encodes};
  agreed.loss = {task.spec.codec == Codec::zfp};
  errors = {};
  agreed.coding.largest_error = &errors.contribution;
  range.forget();
  note(find_input());
}

Status ReductionRun::find_input() {
  input = static_cast<const std::byte*>(task.reduction.input);
  device = gpu::host;
  if (task.reduction.count == 0) return Status::ok;
  const Location place = locate(task.messaging, input, *task.layout);
  device = place.device;
  if (device == gpu::host) return place.is_readable ? Status::ok : Status::device_failed;
  if (is_aligned(input, task.reduction.width())) return Status::ok;
  memory::Buffer made = take(task.reduction.bytes());
  return made ? use_copy(std::move(made)) : move_to_host();
}

/// The input is a copy from now on, in memory of `device`.
Status ReductionRun::use_copy(memory::Buffer made) {
  const Location from = locate(task.messaging, input, *task.layout);
  const Status status =
      copy_bytes(task.messaging, made.data(), {device, true}, input, from, task.reduction.bytes());
  copy = std::move(made);
  input = copy.data();
  return status;
}

Status ReductionRun::move_to_host() {
  memory::Buffer made = task.messaging.pool.take(task.reduction.bytes());
  if (!made) return short_of_memory(task.messaging, gpu::host);
  device = gpu::host;
  return use_copy(std::move(made));
}

memory::Buffer ReductionRun::take(std::size_t bytes) const {
  return device == gpu::host ? task.messaging.pool.take(bytes)
                             : task.messaging.devices.take(device, bytes);
}

memory::Buffer ReductionRun::need(std::size_t bytes) {
  memory::Buffer made = take(bytes);
  if (!made) note(short_of_memory(task.messaging, device));
  return made;
}

bool ReductionRun::lies_beside(const void* data) const {
  return is_aligned(data, task.reduction.width()) &&
         device_of(task.messaging, data, *task.layout) == device;
}

Contribution ReductionRun::longest_contribution() const {
  const int rank = task.team.rank();
  return {engine::longest_contribution(task.reduction, input, task.begins, rank), task.spec};
}

std::unique_ptr<Movement> ReductionRun::movement(bool shares, schedule::Op op,
                                                 const ElementSpans& sent,
                                                 const ElementSpans& received,
                                                 schedule::Schedule schedule, const Coding* coding,
                                                 ElementBlocks::Place place) const {
  return begin(shares,
               std::make_unique<ElementBlocks>(schedule::Task{op, task.team.size(), task.root},
                                               task.team.rank(), task.layout, sent, received,
                                               std::move(place)),
               std::move(schedule), coding);
}

std::unique_ptr<Movement> ReductionRun::all_gather(void* all, std::size_t bytes) const {
  const schedule::Task gather{schedule::Op::allgather, task.team.size()};
  const ElementSpans members{all, gather.size, static_cast<std::int64_t>(bytes)};
  return begin(false,
               std::make_unique<ElementBlocks>(gather, task.team.rank(), plain_layout(std::nullopt),
                                               ElementSpans{}, members),
               schedule::bruck_allgather(gather, task.team.rank()), nullptr);
}

std::unique_ptr<Movement> ReductionRun::begin(bool shares, std::unique_ptr<const BlockMap> blocks,
                                              schedule::Schedule schedule,
                                              const Coding* coding) const {
  const Movement::Of of{task.messaging, task.called(),   task.call.family,
                        task.team,      tag.of_blocks(), !status.is_ok(),
                        coding};
  auto made = std::make_unique<Movement>(of, shares, std::move(blocks), std::move(schedule));
  made->runner().drive(task.served.is_blocking);
  made->runner().await(is_awaited);
  return made;
}

}  // namespace mpress::engine
