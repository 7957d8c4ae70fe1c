// Where MPI puts a message, and how its data gets from there to where the program wants it.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/staging.hpp"
#include "engine/job/job.hpp"
#include "engine/p2p/receive/receive.hpp"
#include "engine/p2p/receive/receive_request.hpp"
#include "gpu/loaded_gpu.hpp"
#include "memory/kind.hpp"
#include "mpi/calls/counted.hpp"

namespace mpress::engine {
namespace {

/// May what comes be a frame? Reductions may encode also where no rank gains by that.
bool is_watched(const Job& job, trace::Called op) {
  return job.watches_receives() || op.op == trace::Op::allreduce || op.op == trace::Op::reduce ||
         op.op == trace::Op::reduce_scatter || op.op == trace::Op::reduce_scatter_block;
}

}  // namespace

bool Receive::describe(Job& job, trace::Called op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  if (capacity_ > 0) find_place(job);
  comm_ = type_ ? mpi::comm_info(arguments.comm) : nullptr;
  return comm_ != nullptr;
}

/// All but the communicator and the place.
void Receive::describe_data(trace::Called op, const ReceiveArguments& arguments) {
  arguments_ = arguments;
  op_ = op;
  posted_ns_ = trace::timeline.now();
  if (arguments.count < 0) return;
  type_ = mpi::type_info(arguments.type);
  if (type_) capacity_ = static_cast<std::size_t>(arguments.count) * type_->size;
}

void Receive::find_place(Job& job) {
  const Location location = locate(job, arguments_.buffer, *type_);
  device_ = location.device;
  is_readable_ = location.is_readable;
  is_seen_ = true;
  if (job.raw_is_mpis) job.receive_places.note(device_ != gpu::host);
  look_behind(job);
}

/// A collective call has waited for it. An MPI that takes device memory orders by itself what it
/// puts where the program wants it: there mpress asks once a frame has come. It puts nothing in
/// gaps, where mpress lays out each message.
void Receive::look_behind(const Job& job) {
  if (op_.algorithm != 0 || (job.gpu_aware && type_->contiguous)) return;
  behind_ = device_ == known_of_ ? known_ : default_work(device_);
}

/// May it stay open where the buffer lies until a frame has come?
bool Receive::may_stay_unseen(Job& job) const {
  return job.raw_is_mpis && type_->contiguous && !trace::timeline.is_on() &&
         !memory::is_own(arguments_.buffer) && !job.forecast.expects(capacity_) &&
         !job.receive_places.is_due();
}

/// Before anybody looks at what MPI has received.
void Receive::see_place(Job& job) {
  if (is_seen_) return;
  find_place(job);
  if (place_ == Place::remote && is_readable_) place_ = Place::in_place;
}

/// For statistics.
bool Receive::is_on_device(const Job& job) const {
  return is_seen_ ? device_ != gpu::host : job.receive_places.last_was_on_device();
}

bool Receive::may_need_unpacking(Job& job, const ReceiveArguments& arguments) {
  if (!gpu::in_use()) return false;
  const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
  return type && packs_for_mpi(job, *type) && device_of(job, arguments.buffer, *type) != gpu::host;
}

bool Receive::may_need_watching(Job& job, trace::Called op, const ReceiveArguments& arguments) {
  if (arguments.count <= 0) return false;
  if (is_watched(job, op)) {
    const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
    if (!type) return false;
    const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
    if (bytes >= wire::min_frame_bytes) return true;
  }
  return may_need_unpacking(job, arguments);
}

bool Receive::watch(Job& job, trace::Called op, const ReceiveArguments& arguments) {
  arguments_ = arguments;
  const bool may_be_frame = is_watched(job, op);
  if (!may_be_frame && !may_need_unpacking(job, arguments)) return false;
  describe_data(op, arguments);
  if (capacity_ == 0) return false;
  is_seen_ = !may_stay_unseen(job);
  if (is_seen_) find_place(job);
  const bool on_device = device_ != gpu::host && packs_for_mpi(job, *type_);
  const bool is_long = may_be_frame && capacity_ >= wire::min_frame_bytes;
  if (!is_long && !on_device) return false;  // most, and so no more is asked
  comm_ = mpi::comm_info(arguments.comm);
  if (!comm_ || (comm_->no_frames && !on_device)) return false;
  if (on_device) return stage_packed(job);
  // Memory that MPI alone can reach, with gaps: MPI copies from staging, too.
  if (!is_readable_ && !type_->contiguous) return stage(job, Place::staged);
  // A type of several kinds can receive floats where it begins with enough of them.
  if (!type_->contiguous && !type_->element && type_->leading_floats < wire::min_frame_bytes) {
    if (job.chunks.is_open()) place_ = Place::scattered;
    return job.chunks.is_open();
  }
  if (!type_->contiguous) return stage(job, Place::staged);
  place_ = is_seen_ && is_readable_ ? Place::in_place : Place::remote;
  // A persistent receive stays where it is.
  if (device_ != gpu::host && op != trace::Op::start && job.forecast.expects(capacity_)) {
    staging_ = job.pool.take(capacity_);  // what MPI does not write costs nothing
    if (staging_) place_ = Place::staged;
  }
  if (type_->element) elements_ = static_cast<MPI_Count>(capacity_ / type_->packed_unit());
  return true;
}

bool Receive::finds_frame(Job& job, trace::Called op, const ReceiveArguments& arguments,
                          std::shared_ptr<mpi::CommInfo> comm, const MPI_Status& status) {
  int cancelled = 0;
  mpi::calls().Test_cancelled(&status, &cancelled);
  describe_data(op, arguments);
  if (cancelled || capacity_ < wire::min_frame_bytes) return false;
  find_place(job);
  comm_ = std::move(comm);
  place_ = is_readable_ ? Place::in_place : Place::remote;
  if (place_ == Place::remote) return true;  // deliver() looks, and tells where a device refuses
  Beginning room;
  wire::Header header;
  const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(status));
  return wire::read_header(beginning(job, room), bytes, job.nonce, header) != wire::Parse::raw;
}

bool Receive::watch_matched(Job& job, trace::Called op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  if (capacity_ > 0) find_place(job);
  comm_ = mpi::comm_info(
      MPI_COMM_SELF);  // MPI does not tell the message's; errors have to go somewhere
  knows_comm_ = false;
  return device_ != gpu::host && packs_for_mpi(job, *type_) && stage_packed(job);
}

/// Gets room for a message that is to be unpacked on its device: there, too, where MPI takes such
/// memory, unless a header is expected, which the host reads. Always true.
bool Receive::stage_packed(Job& job) {
  if (job.hands_devices_to_mpi() && !job.forecast.expects(capacity_)) {
    staging_ = job.devices.take(device_, capacity_);
  }
  if (!staging_) return stage(job, Place::staged);
  place_ = Place::remote;
  receive_packed();
  return true;
}

/// MPI receives the elements, or bytes, of a message without its gaps.
void Receive::receive_packed() {
  if (type_->element || !type_->contiguous) {
    elements_ = static_cast<MPI_Count>(capacity_ / type_->packed_unit());
  }
}

/// Gets room for the message beside the program's buffer. Always true.
bool Receive::stage(Job& job, Place place) {
  place_ = place;
  // What MPI does not write costs nothing in ordinary memory; pinned memory is dear, and large
  // messages mostly come in chunks, which have their own.
  const bool pinned = device_ != gpu::host && !job.chunks.may_come_cut(capacity_);
  staging_ = pinned ? job.devices.take_pinned(device_, capacity_) : job.pool.take(capacity_);
  if (!staging_) {
    // Unwatched, a frame would be strewn over the program's layout.
    mpi::fatal("rank " + std::to_string(job.rank) + ": no memory to receive " +
               std::to_string(capacity_) + " bytes into device memory or a type with gaps");
  }
  receive_packed();
  return true;
}

/// An MPI that takes memory of the device gets such memory here, too: by way of the host long
/// messages take a hundred times as long.
void Receive::stage_aside(Job& job) {
  see_place(job);
  if (place_ == Place::remote && device_ != gpu::host) {
    staging_ = job.devices.take(device_, capacity_);
    if (staging_) return;
  }
  stage(job, Place::aside);
}

/// A contested receive has come that no data follows: a frame is brought to safety before others
/// write to the program's buffer. Always true.
bool Receive::rescue(Job& job, const MPI_Status& status) {
  if (!is_contested_ || staging_) return true;
  const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(status));
  if (place_ == Place::remote && !wire::is_frame_size(bytes)) return true;
  see_place(job);
  if (!is_readable_ && device_ == gpu::host) return true;
  Beginning room;
  wire::Header header;
  if (wire::read_header(beginning(job, room), bytes, job.nonce, header) == wire::Parse::raw)
    return true;
  memory::Buffer copy = job.pool.take(capacity_);
  if (!copy || copy_to_host(job, copy.data(), bytes) != MPI_SUCCESS) return true;
  staging_ = std::move(copy);
  if (!is_readable_) place_ = Place::staged;
  return true;
}

/// Before data is laid out in a buffer that other receives may have, too: they look at what has
/// come there, and finish what they have begun there.
void Receive::let_others_leave(Job& job) const {
  const auto others =
      job.in_place.overlapping(reinterpret_cast<std::uintptr_t>(arguments_.buffer), capacity_);
  if (others.empty() || !job.peek.is_possible() || Progress::is_advancing()) return;
  job.progress.wait_until([&] {
    job.progress.advance();
    return std::none_of(others.begin(), others.end(), [](const auto& other) {
      return !other->is_over() && (other->receive.fills_buffer() || other->is_unseen());
    });
  });
}

/// The first `bytes` bytes of what MPI received, without gaps.
int Receive::copy_to_host(Job& job, std::byte* to, std::size_t bytes) const {
  if (is_readable_) {
    std::memcpy(to, buffer(), bytes);
    return MPI_SUCCESS;
  }
  if (device_ == gpu::host) return job.code_of(type_->fetch(buffer(), to, bytes));
  const QueueLease queue = job.devices.queue(device_);
  if (!queue) return job.code_of(refused(job, device_));
  return job.code_of(job.devices.wait(*queue, queue->copy(to, buffer(), bytes)));
}

/// The first bytes of what MPI received, without gaps.
const std::byte* Receive::beginning(Job& job, Beginning& room) const {
  if (place_ == Place::remote) {
    if (copy_to_host(job, room.data(), room.size()) != MPI_SUCCESS) room.fill(std::byte{0});
    return room.data();
  }
  if (place_ != Place::scattered) return static_cast<const std::byte*>(buffer());
  std::byte* to = room.data();
  type_->first_runs().for_each([&](const gpu::Run& run) {
    std::memcpy(to, static_cast<const std::byte*>(arguments_.buffer) + run.offset, run.bytes);
    to += run.bytes;
  });
  return room.data();
}

/// Lays packed data out as the program's type says.
int Receive::scatter(Job& job, const std::byte* packed, std::size_t bytes) {
  if (is_aside()) let_others_leave(job);
  if (device_ != gpu::host) {
    return job.code_of(unpack_to_device(job, device_, packed, bytes, arguments_.buffer,
                                        arguments_.count, *type_, behind_));
  }
  if (type_->contiguous && is_readable_) {
    if (bytes > 0) std::memcpy(arguments_.buffer, packed, bytes);
    return MPI_SUCCESS;
  }
  return job.code_of(
      type_->unpack(packed, bytes, arguments_.buffer, arguments_.count, is_readable_));
}

}  // namespace mpress::engine
