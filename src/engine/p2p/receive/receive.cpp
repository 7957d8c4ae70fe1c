#include "engine/p2p/receive/receive.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/job/job.hpp"
#include "engine/p2p/receive/receive_request.hpp"
#include "mpi/calls/counted.hpp"
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

std::size_t bytes_of(const MPI_Status& status) {
  return static_cast<std::size_t>(mpi::counted::bytes_of(status));
}

}  // namespace

int Receive::deliver(Job& job, MPI_Status& status) {
  const mpi::Calls& mpi = mpi::calls();
  int cancelled = 0;
  mpi.Test_cancelled(&status, &cancelled);
  const bool is_watched = place_ != Place::unwatched || is_delivered();
  if (!is_watched || cancelled || status.MPI_SOURCE == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!is_delivered() && !incoming_) {
    const std::size_t bytes = bytes_of(status);
    if (wire::is_frame_size(bytes)) see_place(job);
    if (place_ == Place::remote) return settle_remote(job, bytes, status);
    Beginning room;
    const bool is_header_size = bytes == wire::min_frame_bytes;
    settle(job, is_header_size ? beginning(job, room) : static_cast<const std::byte*>(buffer()),
           bytes, status);
    return delivered_code_;
  }
  if (!is_delivered()) {
    delivered_code_ = conclude(job);
    delivery_ = Delivery::done;
  }
  mpi.Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(delivered_bytes_));
  return delivered_code_;
}

/// Settles a message that lies where the CPU cannot look: what is no frame by its size stays there.
int Receive::settle_remote(Job& job, std::size_t bytes, MPI_Status& status) {
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
    delivery_ = Delivery::done;
  } else {
    settle(job, copy ? copy.data() : static_cast<const std::byte*>(buffer()), bytes, status);
  }
  return delivered_code_;
}

bool Receive::may_come_in_chunks(const Job& job) const {
  if (place_ == Place::unwatched || is_delivered()) return false;
  // What comes from another GPU may be one chunk, and its sender may wait for this process to take
  // it.
  if (job.chunks.may_come_cut(capacity_)) return true;
  if (device_ == gpu::host && job.timings.may_come(capacity_)) return true;
  if (!job.chunks.is_open() || capacity_ < job.links.least_bytes_between_devices) return false;
  return job.gets_device_chunks || (device_ != gpu::host && job.links.are_used_between_devices());
}

bool Receive::is_all_there(Job& job, MPI_Request request) {
  if (!incoming_) {
    // The status is asked for only where there is a header: MPI may raise what went wrong.
    if (!job.peek.is_complete(request)) return false;
    if (place_ == Place::remote && !is_contested_ &&
        !job.peek.may_have(request, wire::min_frame_bytes))
      return true;
    see_place(job);
    Beginning room;
    if (!is_contested_ && !wire::announces_chunks(beginning(job, room), job.nonce)) return true;
    MPI_Status status;
    if (job.peek.status(request, status) != MPI_SUCCESS) return true;
    if (!collects(job, status)) return rescue(job, status);
  }
  return incoming_->advance();
}

bool Receive::collects(Job& job, const MPI_Status& status) {
  int cancelled = 0;
  mpi::calls().Test_cancelled(&status, &cancelled);
  if (cancelled || status.MPI_SOURCE == MPI_PROC_NULL) return false;
  const std::size_t bytes = bytes_of(status);
  if (place_ == Place::remote && bytes != wire::min_frame_bytes) return false;
  see_place(job);
  Beginning room;
  return collect(job, beginning(job, room), bytes, status.MPI_SOURCE);
}

bool Receive::collect(Job& job, const std::byte* data, std::size_t bytes, int source) {
  wire::Header header;
  if (wire::read_header(data, bytes, job.nonce, header) != wire::Parse::frame) return false;
  if (header.chunk_bytes == 0 || header.raw_bytes() > capacity_) return false;
  job.has_got_frames.store(true, std::memory_order_relaxed);
  see_place(job);
  const int rank = comm_->world_rank(source);
  if (!Incoming::link_of(job, header, rank)) return false;
  if (device_ != gpu::host) job.forecast.header_came(capacity_);
  incoming_ = Incoming::from_link(job, header, rank, destination(job), travel_begin_ns_);
  if (!incoming_) return false;
  if (place_ == Place::unwatched) place_ = Place::in_place;
  return true;
}

Destination Receive::destination(const Job& job) {
  if (op_.algorithm == 0 && job.gpu_aware && type_->contiguous) behind_ = default_work(device_);
  if (behind_ && behind_->query() == gpu::State::done) behind_ = nullptr;
  const bool is_reached = is_readable_ || device_ != gpu::host;
  const bool is_shared = is_aside() || is_contested_;
  return {static_cast<std::byte*>(arguments_.buffer),
          device_,
          type_->contiguous && is_reached && !is_shared,
          behind_,
          kept_in_,
          is_kept_alone_};
}

void Receive::settle(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status) {
  delivered_code_ = accept(job, data, bytes, status);
  delivery_ = Delivery::done;
}

void Receive::fail(int code, bool is_raised) {
  delivered_code_ = code;
  delivered_bytes_ = 0;
  delivery_ = is_raised ? Delivery::raised : Delivery::done;
}

int Receive::accept(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status) {
  const int source = knows_comm_ ? comm_->world_rank(status.MPI_SOURCE) : trace::any_peer;
  const bool is_where_received = data == buffer();
  if (!is_where_received) see_place(job);
  Arrived arrived{data, bytes, source, data == arguments_.buffer, {}};
  if (device_ != gpu::host) job.links.connect(source, device_);
  if (job.pacer.active()) {
    job.pacer.arrive(bytes, travel_begin_ns_ ? travel_begin_ns_ : trace::now_ns());
  }
  int code = MPI_SUCCESS;
  // A frame would have been brought elsewhere from where the CPU cannot look.
  wire::Parse parse = (place_ == Place::scattered || place_ == Place::remote) && is_where_received
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
      code = deliver_frame(job, arrived, status.MPI_SOURCE);
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
  trace::Row& row = job.record.row(key(job, arrived.source, Codec::none, trace::Way::whole));
  trace::add_message(row, arrived.bytes, arrived.bytes);
  trace::add(row.wait_ns, waited_ns_);
  delivered_bytes_ = std::min(arrived.bytes, capacity_);
  if (is_seen_ && device_ != gpu::host) job.forecast.other_came(capacity_);
  if (!arrived.in_place) {
    const int code = scatter(job, arrived.data, delivered_bytes_);
    if (code != MPI_SUCCESS) return code;
  }
  note_message(arrived.source, Codec::none, arrived.bytes, trace::no_number);
  return arrived.bytes > capacity_ ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int Receive::deliver_frame(Job& job, const Arrived& arrived, int source) {
  const wire::Header& header = arrived.header;
  if (header.chunk_bytes == 0) {
    if (header.raw_bytes() > capacity_) return MPI_ERR_TRUNCATE;
    incoming_ = Incoming::from_frame(job, header, arrived.source, destination(job),
                                     arrived.data + wire::header_bytes);
    if (!incoming_) {
      const trace::Key lost = key(job, arrived.source, header.spec.codec, trace::Way::whole);
      trace::add(job.record.row(lost).errors, 1);
      return MPI_ERR_NO_MEM;
    }
    return conclude(job);
  }
  if (collect(job, arrived.data, arrived.bytes, source)) return conclude(job);
  if (!Incoming::link_of(job, header, arrived.source)) {
    trace::say("rank " + std::to_string(job.rank) + ": a frame announces chunks that cannot come");
    return job.corrupt_code;
  }
  job.chunks.drop(header, arrived.source);
  job.chunks.follow();
  // The next message to this buffer must not seem to begin with what is left of this one.
  if (arrived.data == buffer()) std::memset(buffer(), 0, wire::header_bytes);
  return header.raw_bytes() > capacity_ ? MPI_ERR_TRUNCATE : MPI_ERR_NO_MEM;
}

/// Waits for the chunks that are still to come; then the message is the program's. Counts it, or
/// that it could not be decoded.
int Receive::conclude(Job& job) {
  ReceivePipeline& chunks = incoming_->pipeline();
  chunks.await();
  const std::uint64_t begin = trace::timeline.now();
  const auto is_over = [&] { return chunks.advance(); };
  if (chunks.is_here()) {
    await_device(device_, is_over);
  } else {
    job.progress.wait_until(is_over);
  }
  const std::unique_ptr<Incoming> incoming = std::move(incoming_);
  const Chunking& cut = chunks.cut();
  const bool is_whole = chunks.way() == trace::Way::whole;
  if (device_ != gpu::host && !is_whole) job.links.connect(cut.peer, device_);
  const std::size_t wire_bytes = (is_whole ? wire::frame_bytes(chunks.wire_bytes())
                                           : wire::min_frame_bytes + chunks.wire_bytes());
  if (is_whole && trace::timeline.is_on()) {
    trace::timeline.note({.begin_ns = begin,
                          .end_ns = trace::now_ns(),
                          .raw_bytes = cut.bytes(),
                          .wire_bytes = wire_bytes,
                          .peer = cut.peer,
                          .device = device_,
                          .kind = trace::Kind::decode,
                          .codec = cut.spec.codec});
  }
  trace::Row& row = job.record.row(key(job, cut.peer, cut.spec.codec, chunks.way()));
  int code = job.code_of(chunks.status());
  if (code == MPI_SUCCESS && !incoming->is_in_place()) {
    code = scatter(job, incoming->elements(), cut.bytes());
  }
  if (code != MPI_SUCCESS) {
    trace::add(row.errors, 1);
    return code;
  }
  delivered_bytes_ = cut.bytes();
  trace::add_message(row, delivered_bytes_, wire_bytes);
  trace::add(row.decode_ns, chunks.decode_ns());
  trace::add(row.wait_ns, waited_ns_);
  trace::add(row.transfer_ns, chunks.transfer_ns());
  if (arguments_.outcome && !is_kept_alone_) arguments_.outcome->add(chunks.bound());
  if (cut.encodes() && !is_kept_alone_) {
    const policy::Place place = device_ != gpu::host ? policy::Place::device : policy::Place::host;
    job.policy.decoded(place, cut.spec.codec, delivered_bytes_, chunks.decode_ns());
  }
  note_message(cut.peer, cut.spec.codec, wire_bytes, cut.message);
  return MPI_SUCCESS;
}

/// Where a message is counted.
trace::Key Receive::key(const Job& job, int source, Codec codec, trace::Way way) const {
  return {trace::Direction::receive, op_, source,           codec,
          trace::Reason::none,       way, is_on_device(job)};
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

}  // namespace mpress::engine
