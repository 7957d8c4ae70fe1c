#include "engine/p2p/receive.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/receive_request.hpp"
#include "link/route.hpp"
#include "mpi/counted.hpp"
#include "mpi/relayout.hpp"
#include "mpi/type_runs.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

/// A message as it came.
struct Receive::Arrived {
  const std::byte* data;
  std::size_t bytes;
  int source;     ///< in MPI_COMM_WORLD
  bool in_place;  ///< it lies in the program's buffer
  wire::Header header;
};

namespace {

/// Can the chunks that a header announces come from this rank?
bool can_come(const Job& job, const wire::Header& header, int source) {
  if (!job.chunks.is_open() || source == trace::any_peer) return false;
  const link::Route route(header.route);
  if (route.kind == link::Kind::mpi) return true;
  return route.kind == link::Kind::peer && job.peer_link.knows(source, route.slot, header.chunks());
}

std::size_t bytes_of(const MPI_Status& status) {
  return static_cast<std::size_t>(mpi::counted::bytes_of(status));
}

}  // namespace

bool Receive::describe(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  describe_data(job, op, arguments);
  comm_ = type_ ? mpi::comm_info(arguments.comm) : nullptr;
  return comm_ != nullptr;
}

/// All but the communicator.
void Receive::describe_data(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  arguments_ = arguments;
  op_ = op;
  posted_ns_ = trace::timeline.now();
  if (arguments.count < 0) return;
  type_ = mpi::type_info(arguments.type);
  if (type_) capacity_ = static_cast<std::size_t>(arguments.count) * type_->size;
  if (capacity_ == 0) return;
  const Location location = locate(job, arguments.buffer, *type_);
  device_ = location.device;
  is_readable_ = location.is_readable;
}

/// Can the program's buffer take elements from a decoder? One on a device stores whole elements.
bool Receive::takes_in_place(ElementType type) const {
  const auto address = reinterpret_cast<std::uintptr_t>(arguments_.buffer);
  if (!type_->contiguous) return false;
  return is_readable_ || (device_ != gpu::host && address % element_size(type) == 0);
}

bool Receive::may_need_watching(Job& job, const ReceiveArguments& arguments) {
  if (arguments.count <= 0) return false;
  const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
  return type && (static_cast<std::size_t>(arguments.count) * type->size >= wire::min_frame_bytes ||
                  (!job.gpu_aware && device_of(job, arguments.buffer, *type) != gpu::host));
}

bool Receive::watch(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  describe_data(job, op, arguments);
  if (capacity_ == 0) return false;
  const bool on_device = device_ != gpu::host && !(job.gpu_aware && type_->contiguous);
  if (capacity_ < wire::min_frame_bytes && !on_device)
    return false;  // most, and so no more is asked
  comm_ = mpi::comm_info(arguments.comm);
  if (!comm_ || (comm_->inter && !on_device)) return false;
  is_remote_ = !is_readable_ && !on_device && type_->contiguous;
  // Memory that MPI alone can reach, with gaps: MPI copies from staging, too.
  if (!is_readable_ && !on_device && !is_remote_) return watched_ = stage(job);
  if (!on_device && type_->contiguous && !type_->element) return watched_ = true;
  // A type of several kinds can receive floats where it begins with enough of them.
  if (!on_device && !type_->element && type_->leading_floats < wire::min_frame_bytes) {
    return watched_ = is_scattered_ = job.chunks.is_open();
  }
  if (on_device || !type_->contiguous) return watched_ = stage(job);
  elements_ = static_cast<MPI_Count>(capacity_ / type_->packed_unit());
  by_element_ = true;
  return watched_ = true;
}

bool Receive::watch_matched(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  describe_data(job, op, arguments);
  comm_ = mpi::comm_info(
      MPI_COMM_SELF);  // MPI does not tell the message's; errors have to go somewhere
  knows_comm_ = false;
  return watched_ = device_ != gpu::host && !job.gpu_aware && stage(job);
}

/// Gets room for the message beside the program's buffer.
bool Receive::stage(Job& job) {
  // What MPI does not write costs nothing in ordinary memory; pinned memory is dear, and large
  // messages mostly come in chunks, which have their own.
  const bool pinned = device_ != gpu::host && !job.chunks.may_come_cut(capacity_);
  staging_ = pinned ? job.devices.take_pinned(device_, capacity_) : job.pool.take(capacity_);
  if (!staging_) {
    // Unwatched, a frame would be strewn over the program's layout.
    mpi::fatal("rank " + std::to_string(job.rank) + ": no memory to receive " +
               std::to_string(capacity_) + " bytes into device memory or a type with gaps");
  }
  if (type_->element || !type_->contiguous) {
    elements_ = static_cast<MPI_Count>(capacity_ / type_->packed_unit());
    by_element_ = true;
  }
  return true;
}

void Receive::stage_aside(Job& job) { is_aside_ = stage(job); }

/// A contested receive has come that no data follows: a frame is brought to safety before others
/// write to the program's buffer. Always true.
bool Receive::rescue(Job& job, const MPI_Status& status) {
  if (!is_contested_ || staging_ || !is_readable_) return true;
  const std::size_t bytes = bytes_of(status);
  wire::Header header;
  if (wire::read_header(arguments_.buffer, bytes, job.nonce, header) == wire::Parse::raw)
    return true;
  staging_ = job.pool.take(capacity_);
  if (staging_) std::memcpy(staging_.data(), arguments_.buffer, bytes);
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

int Receive::deliver(Job& job, MPI_Status& status) {
  const mpi::Calls& mpi = mpi::calls();
  int cancelled = 0;
  mpi.Test_cancelled(&status, &cancelled);
  if (!(watched_ || delivered_) || cancelled || status.MPI_SOURCE == MPI_PROC_NULL)
    return MPI_SUCCESS;
  if (!delivered_ && !chunks_) {
    if (is_remote_) return settle_remote(job, status);
    Beginning room;
    const std::size_t bytes = bytes_of(status);
    const bool is_header_size = bytes == wire::min_frame_bytes;
    settle(job, is_header_size ? beginning(job, room) : static_cast<const std::byte*>(buffer()),
           bytes, status);
    return delivered_code_;
  }
  if (!delivered_) {
    delivered_code_ = conclude_chunks(job);
    delivered_ = true;
  }
  mpi.Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(delivered_bytes_));
  return delivered_code_;
}

/// Settles a message that lies where the CPU cannot look: what is no frame by its size stays there.
int Receive::settle_remote(Job& job, MPI_Status& status) {
  const std::size_t bytes = bytes_of(status);
  memory::Buffer copy;
  int code = MPI_SUCCESS;
  if (wire::is_frame_size(bytes)) {
    Beginning room;
    wire::Header header;
    code = copy_to_host(job, room.data(), room.size());
    if (code == MPI_SUCCESS &&
        wire::read_header(room.data(), bytes, job.nonce, header) != wire::Parse::raw) {
      copy = job.pool.take(bytes);
      code = copy ? copy_to_host(job, copy.data(), bytes) : MPI_ERR_NO_MEM;
    }
  }
  if (code != MPI_SUCCESS) {
    delivered_code_ = code;
    delivered_ = true;
  } else {
    settle(job, copy ? copy.data() : static_cast<const std::byte*>(buffer()), bytes, status);
  }
  return delivered_code_;
}

/// The first `bytes` bytes of what MPI received where the CPU cannot look.
int Receive::copy_to_host(Job& job, std::byte* to, std::size_t bytes) const {
  const auto count = static_cast<MPI_Count>(bytes);
  if (device_ == gpu::host) {  // MPI can
    return mpi::relayout(arguments_.buffer, {count, MPI_BYTE}, to, {count, MPI_BYTE});
  }
  const QueueLease queue = job.devices.queue(device_);
  if (!queue) return refused(job, device_);
  return job.devices.wait(job, *queue, queue->copy(to, arguments_.buffer, bytes));
}

/// The first bytes of what MPI received, without gaps.
const std::byte* Receive::beginning(Job& job, Beginning& room) const {
  if (is_remote_) {
    if (copy_to_host(job, room.data(), room.size()) != MPI_SUCCESS) room.fill(std::byte{0});
    return room.data();
  }
  if (!is_scattered_) return static_cast<const std::byte*>(buffer());
  std::byte* to = room.data();
  for (const gpu::Run& run : mpi::first_runs(*type_)) {
    std::memcpy(to, static_cast<const std::byte*>(arguments_.buffer) + run.offset, run.bytes);
    to += run.bytes;
  }
  return room.data();
}

bool Receive::may_come_in_chunks(const Job& job) const {
  if (!watched_ || delivered_) return false;
  // What comes from another GPU may be one chunk, and its sender may wait for this process to take
  // it.
  return job.chunks.may_come_cut(capacity_) ||
         (device_ != gpu::host && job.peer_link.is_used() && capacity_ >= job.least_peer_bytes);
}

bool Receive::is_all_there(Job& job, MPI_Request request) {
  if (!chunks_) {
    // The status is asked for only where there is a header: MPI may raise what went wrong.
    if (!job.peek.is_complete(request)) return false;
    Beginning room;
    if (!is_contested_ && !wire::announces_chunks(beginning(job, room), job.nonce)) return true;
    int arrived = 0;
    MPI_Status status;
    if (mpi::calls().Request_get_status(request, &arrived, &status) != MPI_SUCCESS) return true;
    if (!collects(job, status)) return rescue(job, status);
  }
  return chunks_->advance(job);
}

bool Receive::collects(Job& job, const MPI_Status& status) {
  int cancelled = 0;
  mpi::calls().Test_cancelled(&status, &cancelled);
  if (cancelled || status.MPI_SOURCE == MPI_PROC_NULL) return false;
  if (is_remote_ && bytes_of(status) != wire::min_frame_bytes) return false;
  Beginning room;
  return collect(job, beginning(job, room), bytes_of(status), status.MPI_SOURCE);
}

bool Receive::collect(Job& job, const std::byte* data, std::size_t bytes, int source) {
  wire::Header header;
  if (wire::read_header(data, bytes, job.nonce, header) != wire::Parse::frame) return false;
  if (header.chunk_bytes == 0 || header.raw_bytes() > capacity_) return false;
  job.has_got_frames.store(true, std::memory_order_relaxed);
  chunks_source_ = comm_->world_rank(source);
  if (!can_come(job, header, chunks_source_)) return false;
  std::unique_ptr<ChunkSink> sink;
  const bool is_shared = is_aside_ || is_contested_;
  chunks_to_ = takes_in_place(header.type) && !is_shared
                   ? static_cast<std::byte*>(arguments_.buffer)
                   : nullptr;
  if (device_ != gpu::host) {
    if (!chunks_to_) packed_ = job.devices.take(device_, header.raw_bytes());
    if (!chunks_to_) chunks_to_ = packed_.data();
    const link::Route route(header.route);
    const bool is_near = route.kind == link::Kind::peer &&
                         job.peer_link.lands_on(chunks_source_, route.slot) == device_;
    if (chunks_to_) sink = device_sink(job, header, chunks_source_, device_, chunks_to_, is_near);
  }
  if (!sink) {  // into host memory, as a device without memory to spare has it, too
    if (!chunks_to_ || device_ != gpu::host) {
      if (!staging_) staging_ = job.pool.take(capacity_);
      if (!staging_) return false;
      packed_.reset();
      chunks_to_ = staging_.data();
    }
    sink = host_sink(job, header, chunks_source_, chunks_to_);
    if (!sink) return false;
  }
  chunks_ = link::Route(header.route).kind == link::Kind::peer
                ? receive_peer_chunks(header, chunks_source_, device_, std::move(sink))
                : receive_chunks(job, header, chunks_source_, std::move(sink), travel_begin_ns_);
  watched_ = true;
  return true;
}

void Receive::settle(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status) {
  delivered_code_ = accept(job, data, bytes, status);
  delivered_ = true;
}

void Receive::fail(int code) {
  delivered_code_ = code;
  delivered_bytes_ = 0;
  is_raised_ = true;
  delivered_ = true;
}

int Receive::accept(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status) {
  const int source = knows_comm_ ? comm_->world_rank(status.MPI_SOURCE) : trace::any_peer;
  Arrived arrived{data, bytes, source, data == arguments_.buffer, {}};
  if (device_ != gpu::host) job.peer_link.connect(source, device_);
  if (job.pacer.active()) {
    job.pacer.arrive(bytes, travel_begin_ns_ ? travel_begin_ns_ : trace::now_ns());
  }
  int code = MPI_SUCCESS;
  wire::Parse parse = (is_scattered_ || is_remote_) && arrived.in_place
                          ? wire::Parse::raw
                          : wire::read_header(data, bytes, job.nonce, arrived.header);
  // MPI had no room for the rest and has raised that, although MPICH's calls return success once a
  // handler of the program's has returned.
  if (parse == wire::Parse::cut && bytes == capacity_) parse = wire::Parse::raw;
  switch (parse) {
    case wire::Parse::raw:
      code = deliver_raw(job, arrived);
      if (arrived.in_place) return code;  // MPI's own status holds
      break;
    case wire::Parse::frame:
      job.has_got_frames.store(true, std::memory_order_relaxed);
      code = arrived.header.chunk_bytes > 0 ? deliver_chunks(job, arrived, status.MPI_SOURCE)
                                            : deliver_frame(job, arrived);
      break;
    case wire::Parse::cut:
    case wire::Parse::corrupt:
      trace::say("rank " + std::to_string(job.rank) + ": the frame from rank " +
                 std::to_string(arrived.source) + " is corrupt: bad header");
      code = job.corrupt_code;
      break;
  }
  mpi::calls().Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(delivered_bytes_));
  return code;
}

int Receive::deliver_raw(Job& job, const Arrived& arrived) {
  trace::Row& row = job.record.row({trace::Direction::receive, op_, arrived.source});
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, arrived.bytes);
  trace::add(row.wire_bytes, arrived.bytes);
  trace::add(row.wait_ns, waited_ns_);
  delivered_bytes_ = std::min(arrived.bytes, capacity_);
  if (!arrived.in_place) {
    const int code = scatter(job, arrived.data, delivered_bytes_);
    if (code != MPI_SUCCESS) return code;
  }
  note_message(arrived.source, Codec::none, arrived.bytes, trace::no_number);
  return arrived.bytes > capacity_ ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int Receive::deliver_chunks(Job& job, const Arrived& arrived, int source) {
  if (collect(job, arrived.data, arrived.bytes, source)) return conclude_chunks(job);
  if (!can_come(job, arrived.header, arrived.source)) {
    trace::say("rank " + std::to_string(job.rank) + ": a frame announces chunks that cannot come");
    return job.corrupt_code;
  }
  job.chunks.drop(job, arrived.header, arrived.source);
  job.follow_chunks();
  // The next message to this buffer must not seem to begin with what is left of this one.
  if (arrived.data == buffer()) std::memset(buffer(), 0, wire::header_bytes);
  return arrived.header.raw_bytes() > capacity_ ? MPI_ERR_TRUNCATE : MPI_ERR_NO_MEM;
}

/// Waits for the chunks that are still to come; then the message is the program's.
int Receive::conclude_chunks(Job& job) {
  chunks_->await();
  job.progress.wait_until([&] { return chunks_->advance(job); });
  if (device_ != gpu::host) job.peer_link.connect(chunks_source_, device_);
  const std::unique_ptr<ChunkReceive> chunks = std::move(chunks_);
  const wire::Header& header = chunks->header();
  const Codec codec = header.spec.codec;
  trace::Row& row = job.record.row(
      {trace::Direction::receive, op_, chunks_source_, codec, trace::Reason::none, chunks->way()});
  int code = chunks->code();
  if (code == MPI_SUCCESS && chunks_to_ != arguments_.buffer) {
    code = scatter(job, chunks_to_, header.raw_bytes());
  }
  packed_.reset();
  if (is_scattered_ || is_remote_) staging_.reset();
  return count_decoded(job, chunks_source_, row, header, code,
                       wire::min_frame_bytes + chunks->wire_bytes(), chunks->decode_ns());
}

int Receive::count_decoded(Job& job, int source, trace::Row& row, const wire::Header& header,
                           int code, std::size_t wire_bytes, std::uint64_t took_ns) {
  if (code != MPI_SUCCESS) {
    trace::add(row.errors, 1);
    return code;
  }
  delivered_bytes_ = header.raw_bytes();
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, delivered_bytes_);
  trace::add(row.wire_bytes, wire_bytes);
  trace::add(row.decode_ns, took_ns);
  trace::add(row.wait_ns, waited_ns_);
  if (header.spec.codec != Codec::none) {
    const policy::Place place = device_ != gpu::host ? policy::Place::device : policy::Place::host;
    job.policy.decoded(place, header.spec.codec, delivered_bytes_, took_ns);
  }
  note_message(source, header.spec.codec, wire_bytes,
               header.chunk_bytes > 0 ? link::Route(header.route).number : trace::no_number);
  return MPI_SUCCESS;
}

/// Shows a message that is the program's now in the timeline.
void Receive::note_message(int source, Codec codec, std::size_t wire_bytes,
                           std::uint32_t message) const {
  if (!trace::timeline.is_on()) return;
  trace::timeline.note({.begin_ns = posted_ns_,
                        .end_ns = trace::now_ns(),
                        .raw_bytes = delivered_bytes_,
                        .wire_bytes = wire_bytes,
                        .message = message,
                        .peer = source,
                        .device = device_,
                        .kind = trace::Kind::receive,
                        .op = op_,
                        .codec = codec});
}

int Receive::deliver_frame(Job& job, const Arrived& arrived) {
  if (arrived.header.raw_bytes() > capacity_) return MPI_ERR_TRUNCATE;
  const Codec codec = arrived.header.spec.codec;
  trace::Row& row = job.record.row({trace::Direction::receive, op_, arrived.source, codec});
  const std::uint64_t begin = trace::now_ns();
  const int code = decode(job, arrived);
  const std::uint64_t end = trace::now_ns();
  if (trace::timeline.is_on()) {
    trace::timeline.note({.begin_ns = begin,
                          .end_ns = end,
                          .raw_bytes = arrived.header.raw_bytes(),
                          .wire_bytes = arrived.bytes,
                          .peer = arrived.source,
                          .device = device_,
                          .kind = trace::Kind::decode,
                          .codec = codec});
  }
  return count_decoded(job, arrived.source, row, arrived.header, code, arrived.bytes, end - begin);
}

int Receive::decode(Job& job, const Arrived& arrived) {
  const wire::Header& header = arrived.header;
  Status status = Status::ok;
  const int code = device_ != gpu::host ? decode_on_device(job, arrived, status)
                                        : decode_on_host(job, arrived, status);
  if (status == Status::ok) return code;
  trace::say("rank " + std::to_string(job.rank) + ": the frame from rank " +
             std::to_string(arrived.source) + " (" + to_string(header.spec) + ", " +
             std::to_string(header.count) + " " + element_name(header.type) +
             " elements) is corrupt: " + status_text(status));
  return job.corrupt_code;
}

int Receive::decode_on_host(Job& job, const Arrived& arrived, Status& status) {
  const wire::Header& header = arrived.header;
  const std::byte* payload = arrived.data + wire::header_bytes;
  // A payload in the program's buffer makes way for what it decodes to; elements of a scattered
  // type, or of a device without memory to spare, are decoded aside and then scattered.
  memory::Buffer aside;
  void* elements = arguments_.buffer;
  const bool scatters = !type_->contiguous || !is_readable_ || is_aside_;
  if (scatters) {
    aside = job.pool.take(header.raw_bytes());
    elements = aside.data();
  } else if (arrived.in_place) {
    aside = job.pool.take(header.payload_bytes);
    if (aside) std::memcpy(aside.data(), payload, header.payload_bytes);
    payload = aside.data();
  }
  if ((scatters || arrived.in_place) && !aside) return MPI_ERR_NO_MEM;
  status = codec::decode(header.spec, header.type, payload, header.payload_bytes, elements,
                         header.count);
  if (status != Status::ok || !scatters) return MPI_SUCCESS;
  return scatter(job, aside.data(), header.raw_bytes());
}

int Receive::decode_on_device(Job& job, const Arrived& arrived, Status& status) {
  const wire::Header& header = arrived.header;
  const memory::Buffer payload = job.devices.take(device_, header.payload_bytes);
  std::byte* elements = static_cast<std::byte*>(arguments_.buffer);
  // A decoder stores whole elements: those of a type with gaps, or at an odd address, go aside.
  const bool in_place = takes_in_place(header.type);
  if (!in_place) {
    packed_ = job.devices.take(device_, header.raw_bytes());
    elements = packed_.data();
  }
  if (!payload || !elements) {
    packed_.reset();
    return decode_on_host(job, arrived, status);
  }
  const QueueLease queue = job.devices.queue(device_);
  if (!queue) return refused(job, device_);
  queue->copy(payload.data(), arrived.data + wire::header_bytes, header.payload_bytes);
  gpu::Outcome outcome;
  const int code = job.devices.wait(job, *queue,
                                    queue->decode(header.spec, header.type, payload.data(),
                                                  header.payload_bytes, elements, header.count),
                                    &outcome);
  status = outcome.status;
  if (code != MPI_SUCCESS || status != Status::ok || in_place) return code;
  const int scattered = scatter(job, packed_.data(), header.raw_bytes());
  packed_.reset();
  return scattered;
}

/// Lays packed data out as the program's type says.
int Receive::scatter(Job& job, const std::byte* packed, std::size_t bytes) {
  if (is_aside_) let_others_leave(job);
  if (device_ != gpu::host) {
    return unpack_to_device(job, device_, packed, bytes, arguments_.buffer, arguments_.count,
                            *type_);
  }
  if (type_->contiguous && is_readable_) {
    if (bytes > 0) std::memcpy(arguments_.buffer, packed, bytes);
    return MPI_SUCCESS;
  }
  const mpi::Layout from{static_cast<MPI_Count>(bytes / type_->packed_unit()),
                         type_->packed_type()};
  return mpi::relayout(packed, from, arguments_.buffer,
                       type_->contiguous ? from : mpi::Layout{arguments_.count, type_->layout});
}

}  // namespace mpress::engine
