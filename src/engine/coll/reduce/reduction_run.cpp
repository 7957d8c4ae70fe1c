#include "engine/coll/reduce/reduction_run.hpp"

#include <utility>

#include "core/staging.hpp"
#include "mpi/job/job.hpp"
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

int ReductionRun::find_input() {
  input = static_cast<const std::byte*>(task.reduction.input);
  device = gpu::host;
  if (!task.layout) return MPI_ERR_TYPE;
  if (task.reduction.count == 0) return MPI_SUCCESS;
  const Location place = locate(task.job, input, *task.layout);
  device = place.device;
  if (device == gpu::host) return place.is_readable ? MPI_SUCCESS : task.job.device_code;
  if (is_aligned(input, task.reduction.width())) return MPI_SUCCESS;
  memory::Buffer made = take(task.reduction.bytes());
  return made ? use_copy(std::move(made)) : move_to_host();
}

/// The input is a copy from now on.
int ReductionRun::use_copy(memory::Buffer made) {
  const std::size_t bytes = task.reduction.bytes();
  const auto count = static_cast<MPI_Count>(task.reduction.count);
  const MPI_Datatype type = task.reduction.mpi_type();
  const Part from{const_cast<std::byte*>(input), count, type, bytes};
  const int error = copy_part(task.job, from, {made.data(), count, type, bytes});
  copy = std::move(made);
  input = copy.data();
  return error;
}

int ReductionRun::move_to_host() {
  memory::Buffer made = task.job.pool.take(task.reduction.bytes());
  if (!made) return task.job.code_of(short_of_memory(task.job, gpu::host));
  device = gpu::host;
  return use_copy(std::move(made));
}

memory::Buffer ReductionRun::take(std::size_t bytes) const {
  return device == gpu::host ? task.job.pool.take(bytes) : task.job.devices.take(device, bytes);
}

memory::Buffer ReductionRun::need(std::size_t bytes) {
  memory::Buffer made = take(bytes);
  if (!made) note(task.job.code_of(short_of_memory(task.job, device)));
  return made;
}

bool ReductionRun::lies_beside(const void* data) const {
  return is_aligned(data, task.reduction.width()) &&
         device_of(task.job, data, *task.layout) == device;
}

void ReductionRun::note(Status status) { note(code_of(task.job, task.team, status)); }

Contribution ReductionRun::longest_contribution() const {
  const int rank = task.team.rank();
  return {engine::longest_contribution(task.reduction, input, task.begins, rank), task.spec};
}

std::unique_ptr<Movement> ReductionRun::movement(bool shares, schedule::Op op, const Operand& send,
                                                 const Operand& receive,
                                                 schedule::Schedule schedule, const Coding* coding,
                                                 OperandBlocks::Place place) const {
  Operands operands;
  operands.comm = comm_of(task.team);
  operands.root = task.operands.root;
  operands.send = send;
  operands.receive = receive;
  const Movement::Of of{task.job, task.called(), task.call.family, task.team, tag.of_blocks(),
                        code,     coding};
  auto made =
      std::make_unique<Movement>(of, op, shares, operands, std::move(schedule), std::move(place));
  made->runner().drive(task.served.is_blocking);
  made->runner().await(is_awaited);
  return made;
}

std::unique_ptr<Movement> ReductionRun::all_gather(void* all, std::size_t bytes) const {
  const Blocks blocks(task.team.size(), static_cast<MPI_Count>(bytes), MPI_BYTE);
  const schedule::Task gather{schedule::Op::allgather, task.team.size()};
  return movement(false, gather.op, {}, {all, {}, blocks},
                  schedule::bruck_allgather(gather, task.team.rank()), nullptr);
}

}  // namespace mpress::engine
