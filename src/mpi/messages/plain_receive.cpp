#include "mpi/messages/plain_receive.hpp"

#include <utility>

#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "memory/kind.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/blocking_receive.hpp"

namespace mpress::engine {
namespace {

std::size_t bytes_of(const MPI_Status& status) {
  return static_cast<std::size_t>(mpi::counted::bytes_of(status));
}

/// A buffer of so many bytes, without a type that the program may free, or a communicator.
ReceiveArguments in_bytes(const ReceiveArguments& posted, std::size_t capacity) {
  return {posted.buffer, static_cast<MPI_Count>(capacity), MPI_BYTE, MPI_COMM_NULL, posted.outcome};
}

/// Does MPI receive it in one way, whichever memory it lies in?
bool is_alike_anywhere(Job& job, const ReceiveArguments& arguments, std::size_t capacity,
                       bool expects_frames) {
  if (!expects_frames) return !MpiReceive::may_need_unpacking(job, arguments);
  return job.raw_is_mpis && !job.forecast.expects(capacity);
}

/// One of many is looked up, for statistics, and as a step towards a link between devices.
int device_if_due(Job& job, const ReceiveArguments& arguments, const mpi::TypeInfo& type) {
  if (!job.raw_is_mpis || !gpu::in_use() || !job.locations.is_due()) return gpu::host;
  const int device = device_of(job, arguments.buffer, type);
  job.locations.note(device != gpu::host);
  return device;
}

/// Counts a message that is no frame.
void count_raw(Job& job, trace::Op op, const void* buffer, const mpi::CommInfo& comm,
               const MPI_Status& status, std::uint64_t begin_ns) {
  trace::Key key{trace::Direction::receive, op, comm.world_rank(status.MPI_SOURCE)};
  key.is_on_device = gpu::in_use() && !memory::is_own(buffer) && job.locations.last_was_on_device();
  trace::Row& row = job.record.row(key);
  trace::add_message(row, bytes_of(status), bytes_of(status));
  trace::add(row.wait_ns, trace::now_ns() - begin_ns);
}

}  // namespace

std::optional<PlainReceive> PlainReceive::of(Job& job, const ReceiveArguments& arguments,
                                             bool is_blocking) {
  if (arguments.count < 0 || job.pacer.active() || trace::timeline.is_on()) return std::nullopt;
  const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
  if (!type || !type->contiguous) return std::nullopt;
  const std::size_t capacity = static_cast<std::size_t>(arguments.count) * type->size;
  const bool expects_frames = capacity >= job.least_watched_bytes();
  if (expects_frames && !is_blocking) return std::nullopt;
  if (gpu::in_use() && !is_alike_anywhere(job, arguments, capacity, expects_frames)) {
    return std::nullopt;
  }
  // A frame may lie there that another receive has still to look at.
  const auto begin = reinterpret_cast<std::uintptr_t>(arguments.buffer);
  if (!job.in_place.empty() && !job.in_place.overlapping(begin, capacity).empty())
    return std::nullopt;
  ReceiveArguments posted = arguments;
  if (type->element) {  // a frame is a whole number of elements, but not of larger items
    posted.count = static_cast<MPI_Count>(capacity / type->packed_unit());
    posted.type = type->packed_type();
  }
  const int device = expects_frames ? device_if_due(job, arguments, *type) : gpu::host;
  return PlainReceive(posted, capacity, expects_frames, device);
}

int PlainReceive::end(Job& job, trace::Op op, const StatusOf& status, std::uint64_t begin_ns,
                      int code) const {
  if (code != MPI_SUCCESS || !status.has_answer()) return code;
  const bool may_be_frame = wire::is_frame_size(bytes_of(*status));
  if (!may_be_frame && !expects_frames_) return code;
  const std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(posted_.comm);
  if (!comm || comm->no_frames || (*status).MPI_SOURCE == MPI_PROC_NULL) return code;
  if (may_be_frame) {
    MpiReceive receive(job);
    if (receive.finds_frame(op, in_bytes(posted_, capacity_), comm, *status)) {
      if (expects_frames_) receive.core().waited_since(begin_ns);
      const int delivered = receive.deliver(*status);
      return delivered == MPI_SUCCESS ? code : comm->raise(delivered);
    }
  }
  if (device_ != gpu::host) job.links.connect(comm->world_rank((*status).MPI_SOURCE), device_);
  if (expects_frames_) count_raw(job, op, posted_.buffer, *comm, *status, begin_ns);
  return code;
}

PlainRequest::PlainRequest(const PlainReceive& plain, trace::Op op,
                           std::shared_ptr<mpi::CommInfo> comm)
    : arguments_(in_bytes(plain.posted(), plain.capacity())), op_(op), comm_(std::move(comm)) {}

bool PlainRequest::finds_frame(Job& job, const MPI_Status& status) {
  if (found_) return true;
  if (!wire::is_frame_size(bytes_of(status))) return false;
  auto receive = std::make_unique<MpiReceive>(job);
  if (receive->finds_frame(op_, arguments_, comm_, status)) found_ = std::move(receive);
  return found_ != nullptr;
}

bool PlainRequest::settle(Job& job, MPI_Request request) {
  MPI_Status status;
  if (!Request::settle(job, request)) return false;
  if (job.peek.status(request, status) != MPI_SUCCESS || !finds_frame(job, status)) return true;
  if (!found_->core().result() && !found_->is_all_there(request)) return false;
  found_->deliver(status);  // whose error the call that completes it raises
  return true;
}

Ending PlainRequest::finish(Job& job, MPI_Status& status) {
  if (!finds_frame(job, status)) return {};
  const int code = found_->deliver(status);
  return {code, code == MPI_SUCCESS ? nullptr : comm_};
}

}  // namespace mpress::engine
