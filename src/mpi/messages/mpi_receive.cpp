#include "mpi/messages/mpi_receive.hpp"

#include <string>

#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/message.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {
namespace {

std::size_t bytes_of(const MPI_Status& status) {
  return static_cast<std::size_t>(mpi::counted::bytes_of(status));
}

}  // namespace

MpiReceive::MpiReceive(Job& job) : job_(job), core_(job) {}

bool MpiReceive::describe(trace::Called op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  core_.place().buffer().locate();
  comm_ = type_ ? mpi::comm_info(arguments.comm) : nullptr;
  return comm_ != nullptr;
}

/// All but the communicator and the place.
void MpiReceive::describe_data(trace::Called op, const ReceiveArguments& arguments) {
  arguments_ = arguments;
  if (arguments.count >= 0) type_ = mpi::type_info(arguments.type);
  core_.describe(op, arguments.buffer, arguments.count, type_.get(), arguments.outcome);
}

bool MpiReceive::may_need_unpacking(Job& job, const ReceiveArguments& arguments) {
  if (!gpu::in_use()) return false;
  const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
  return type && packs_for_mpi(job, *type) && device_of(job, arguments.buffer, *type) != gpu::host;
}

bool MpiReceive::may_need_watching(Job& job, const ReceiveArguments& arguments,
                                   bool encodes_anyway) {
  if (arguments.count <= 0) return false;
  if (encodes_anyway || job.watches_receives()) {
    const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
    if (!type) return false;
    const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
    if (bytes >= wire::min_frame_bytes) return true;
  }
  return may_need_unpacking(job, arguments);
}

bool MpiReceive::watch(trace::Called op, const ReceiveArguments& arguments, bool encodes_anyway) {
  arguments_ = arguments;
  const bool may_be_frame = encodes_anyway || job_.watches_receives();
  if (!may_be_frame && !may_need_unpacking(job_, arguments)) return false;
  describe_data(op, arguments);
  if (!core_.place().is_needed(may_be_frame)) return false;  // most, and so no more is asked
  comm_ = mpi::comm_info(arguments.comm);
  // A persistent receive stays where it is.
  const bool is_watched =
      comm_ && core_.place().choose(!comm_->no_frames, op.op == trace::Op::start);
  require_memory();
  return is_watched;
}

bool MpiReceive::watch_matched(trace::Called op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  core_.place().buffer().locate();
  // MPI does not give the message's communicator; errors have to go somewhere.
  comm_ = mpi::comm_info(MPI_COMM_SELF);
  knows_comm_ = false;
  const bool is_watched = core_.place().choose_raw();
  require_memory();
  return is_watched;
}

bool MpiReceive::finds_frame(trace::Called op, const ReceiveArguments& arguments,
                             std::shared_ptr<mpi::CommInfo> comm, const MPI_Status& status) {
  describe_data(op, arguments);
  ReceivePlace& place = core_.place();
  if (mpi::is_cancelled(status) || place.buffer().capacity() < wire::min_frame_bytes) return false;
  place.buffer().locate();
  place.choose_in_place();
  comm_ = std::move(comm);
  // Where the CPU cannot look deliver() does, and returns the error where a device refuses.
  return place.kind() == ReceivePlace::Kind::remote || core_.has_frame(bytes_of(status));
}

void MpiReceive::outlive_call() {
  if (!type_) return;
  type_ = mpi::lasting(std::move(type_));
  core_.place().buffer().use(*type_);
}

ReceiveArguments MpiReceive::posted() const {
  const ReceivePlace& place = core_.place();
  ReceiveArguments posted{arguments_.buffer, arguments_.count, arguments_.type, arguments_.comm};
  if (place.kind() != ReceivePlace::Kind::unwatched) posted.buffer = place.data();
  if (place.packed_units() > 0) {
    posted.count = place.packed_units();
    posted.type = type_->packed_type();
  }
  return posted;
}

void MpiReceive::stage_aside() {
  core_.place().stage_aside();
  require_memory();
}

void MpiReceive::require_memory() const {
  if (!core_.place().lacks_memory()) return;
  mpi::fatal("rank " + std::to_string(job_.rank) + ": no memory to receive " +
             std::to_string(core_.place().buffer().capacity()) +
             " bytes into device memory or a type with gaps");
}

bool MpiReceive::is_all_there(MPI_Request request) {
  if (!core_.incoming()) {
    // The status is asked for only where there is a header: MPI may raise what went wrong.
    if (!job_.peek.is_complete(request)) return false;
    const ReceivePlace& place = core_.place();
    if (place.kind() == ReceivePlace::Kind::remote && !place.is_contested() &&
        !job_.peek.may_have(request, wire::min_frame_bytes)) {
      return true;
    }
    MPI_Status status;
    if (!core_.may_be_header() || job_.peek.status(request, status) != MPI_SUCCESS) return true;
    if (!collects(status)) {
      core_.save(bytes_of(status));
      return true;
    }
  }
  return core_.advance();
}

bool MpiReceive::collects(const MPI_Status& status) {
  return !mpi::is_cancelled(status) && status.MPI_SOURCE != MPI_PROC_NULL &&
         core_.collect(bytes_of(status), world_rank(status.MPI_SOURCE));
}

bool MpiReceive::collects(const std::byte* data, std::size_t bytes, int source) {
  return core_.collect(data, bytes, world_rank(source));
}

int MpiReceive::deliver(MPI_Status& status) {
  const bool is_watched = core_.place().kind() != ReceivePlace::Kind::unwatched || core_.result();
  if (!is_watched || mpi::is_cancelled(status) || status.MPI_SOURCE == MPI_PROC_NULL) {
    return MPI_SUCCESS;
  }
  if (core_.incoming()) {
    core_.deliver();
  } else if (!core_.result()) {
    core_.deliver(bytes_of(status), world_rank(status.MPI_SOURCE));
    if (core_.result()->is_as_received) return code();
  }
  return mend(status);
}

int MpiReceive::settle(const std::byte* data, std::size_t bytes, MPI_Status& status) {
  core_.deliver(data, bytes, world_rank(status.MPI_SOURCE));
  return core_.result()->is_as_received ? code() : mend(status);
}

int MpiReceive::mend(MPI_Status& status) const {
  mpi::calls().Status_set_elements_x(&status, MPI_BYTE,
                                     static_cast<MPI_Count>(core_.result()->bytes));
  return code();
}

void MpiReceive::fail(int code, bool is_raised) {
  core_.fail();
  failed_code_ = code;
  is_raised_ = is_raised;
}

void MpiReceive::renew() {
  core_.renew();
  failed_code_ = MPI_SUCCESS;
  is_raised_ = false;
}

int MpiReceive::world_rank(int source) const {
  return knows_comm_ ? comm_->world_rank(source) : trace::any_peer;
}

int MpiReceive::code() const {
  return failed_code_ != MPI_SUCCESS ? failed_code_ : job_.code_of(core_.result()->status);
}

}  // namespace mpress::engine
