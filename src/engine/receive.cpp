#include "engine/receive.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/relayout.hpp"
#include "link/counted.hpp"
#include "memory/kind.hpp"
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
  return static_cast<std::size_t>(link::counted::bytes_of(status));
}

}  // namespace

bool Receive::describe(trace::Op op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  comm_ = type_ ? comm_info(arguments.comm) : nullptr;
  return comm_ != nullptr;
}

/// All but the communicator.
void Receive::describe_data(trace::Op op, const ReceiveArguments& arguments) {
  arguments_ = arguments;
  op_ = op;
  if (arguments.count < 0) return;
  type_ = type_info(arguments.type);
  if (type_) capacity_ = static_cast<std::size_t>(arguments.count) * type_->size;
}

bool Receive::has_room_for_frame(const ReceiveArguments& arguments) {
  if (arguments.count < 0) return false;
  const std::shared_ptr<const TypeInfo> type = glance_at_type(arguments.type);
  return type && static_cast<std::size_t>(arguments.count) * type->size >= wire::min_frame_bytes;
}

bool Receive::watch(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  describe_data(op, arguments);
  if (capacity_ < wire::min_frame_bytes) return false;  // most receives, and so no more is asked
  comm_ = comm_info(arguments.comm);
  if (!comm_ || comm_->inter) return false;
  // Whoever looks at the buffer later can ask then: most messages are no frames by their size.
  const bool ask_now = !type_->contiguous || job.chunks.cuts(capacity_);
  if (ask_now && memory::kind_of(arguments.buffer) == memory::Kind::device) return false;
  if (!type_->element && type_->contiguous) return watched_ = true;
  // A type of several kinds can receive floats where it begins with enough of them.
  if (!type_->element && type_->leading_floats < wire::min_frame_bytes) return false;
  if (!type_->contiguous) {
    staging_ = job.pool.take(capacity_);
    if (!staging_) {
      // Unwatched, a frame would be strewn over the program's layout.
      link::fatal("rank " + std::to_string(job.rank) + ": no memory to receive " +
                  std::to_string(capacity_) + " bytes of a type with gaps");
    }
  }
  elements_ = static_cast<MPI_Count>(capacity_ / type_->packed_unit());
  by_element_ = true;
  return watched_ = true;
}

int Receive::deliver(Job& job, MPI_Status& status) {
  const link::MpiCalls& mpi = link::mpi();
  int cancelled = 0;
  mpi.Test_cancelled(&status, &cancelled);
  if (!(watched_ || delivered_) || cancelled || status.MPI_SOURCE == MPI_PROC_NULL)
    return MPI_SUCCESS;
  if (!delivered_ && !chunks_) {
    settle(job, static_cast<const std::byte*>(buffer()), bytes_of(status), status);
    return delivered_code_;
  }
  if (!delivered_) {
    delivered_code_ = conclude_chunks(job);
    delivered_ = true;
  }
  mpi.Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(delivered_bytes_));
  return delivered_code_;
}

bool Receive::may_come_in_chunks(const Job& job) const {
  return watched_ && !delivered_ && job.chunks.cuts(capacity_);
}

bool Receive::is_all_there(Job& job, MPI_Request request) {
  if (!chunks_) {
    // The status is asked for only where there is a header: MPI may raise what went wrong.
    if (!job.peek.is_complete(request)) return false;
    if (!wire::announces_chunks(buffer(), job.nonce)) return true;
    int arrived = 0;
    MPI_Status status;
    if (link::mpi().Request_get_status(request, &arrived, &status) != MPI_SUCCESS) return true;
    if (!collects(job, status)) return true;
  }
  return chunks_->advance(job);
}

bool Receive::collects(Job& job, const MPI_Status& status) {
  int cancelled = 0;
  link::mpi().Test_cancelled(&status, &cancelled);
  if (cancelled || status.MPI_SOURCE == MPI_PROC_NULL) return false;
  const auto* data = static_cast<const std::byte*>(buffer());
  return collect(job, data, bytes_of(status), status.MPI_SOURCE);
}

bool Receive::collect(Job& job, const std::byte* data, std::size_t bytes, int source) {
  wire::Header header;
  if (wire::read_header(data, bytes, job.nonce, header) != wire::Parse::frame) return false;
  if (header.chunk_bytes == 0 || header.raw_bytes() > capacity_) return false;
  chunks_source_ = comm_->world_rank(source);
  if (!job.chunks.is_open() || chunks_source_ == trace::any_peer) return false;
  if (!type_->contiguous && !staging_) {
    staging_ = job.pool.take(capacity_);
    if (!staging_) return false;
  }
  std::byte* elements =
      type_->contiguous ? static_cast<std::byte*>(arguments_.buffer) : staging_.data();
  chunks_ = std::make_unique<ChunkReceive>(job, header, chunks_source_, elements, travel_begin_ns_);
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
  Arrived arrived{data, bytes, comm_->world_rank(status.MPI_SOURCE), data == arguments_.buffer, {}};
  if (job.pacer.active()) {
    job.pacer.arrive(bytes, travel_begin_ns_ ? travel_begin_ns_ : trace::now_ns());
  }
  const bool is_readable = !arrived.in_place || !wire::is_frame_size(bytes) ||
                           memory::kind_of(data) == memory::Kind::host;
  int code = MPI_SUCCESS;
  wire::Parse parse = wire::Parse::raw;
  if (is_readable) parse = wire::read_header(data, bytes, job.nonce, arrived.header);
  // MPI had no room for the rest and has raised that, although MPICH's calls return success once a
  // handler of the program's has returned.
  if (parse == wire::Parse::cut && bytes == capacity_) parse = wire::Parse::raw;
  switch (parse) {
    case wire::Parse::raw:
      code = deliver_raw(job, arrived);
      if (arrived.in_place) return code;  // MPI's own status holds
      break;
    case wire::Parse::frame:
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
  link::mpi().Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(delivered_bytes_));
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
  return arrived.bytes > capacity_ ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int Receive::deliver_chunks(Job& job, const Arrived& arrived, int source) {
  if (collect(job, arrived.data, arrived.bytes, source)) return conclude_chunks(job);
  if (!job.chunks.is_open() || arrived.source == trace::any_peer) {
    trace::say("rank " + std::to_string(job.rank) + ": a frame announces chunks that cannot come");
    return job.corrupt_code;
  }
  job.chunks.drop(job, arrived.header, arrived.source);
  // The next message to this buffer must not seem to begin with what is left of this one.
  if (arrived.data == buffer()) std::memset(buffer(), 0, wire::header_bytes);
  return arrived.header.raw_bytes() > capacity_ ? MPI_ERR_TRUNCATE : MPI_ERR_NO_MEM;
}

/// Waits for the chunks that are still to come; then the message is the program's.
int Receive::conclude_chunks(Job& job) {
  chunks_->finish(job);
  const std::unique_ptr<ChunkReceive> chunks = std::move(chunks_);
  const wire::Header& header = chunks->header();
  const Codec codec = header.spec.codec;
  trace::Row& row = job.record.row(
      {trace::Direction::receive, op_, chunks_source_, codec, trace::Reason::none, true});
  int code = chunks->code();
  if (code == MPI_SUCCESS && !type_->contiguous) {
    code = scatter(job, staging_.data(), header.raw_bytes());
  }
  return count_decoded(job, row, header, code, wire::min_frame_bytes + chunks->wire_bytes(),
                       chunks->decode_ns());
}

int Receive::count_decoded(Job& job, trace::Row& row, const wire::Header& header, int code,
                           std::size_t wire_bytes, std::uint64_t took_ns) {
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
  job.policy.decoded(header.spec.codec, delivered_bytes_, took_ns);
  return MPI_SUCCESS;
}

int Receive::deliver_frame(Job& job, const Arrived& arrived) {
  if (arrived.header.raw_bytes() > capacity_) return MPI_ERR_TRUNCATE;
  const Codec codec = arrived.header.spec.codec;
  trace::Row& row = job.record.row({trace::Direction::receive, op_, arrived.source, codec});
  const std::uint64_t begin = trace::now_ns();
  const int code = decode(job, arrived);
  return count_decoded(job, row, arrived.header, code, arrived.bytes, trace::now_ns() - begin);
}

int Receive::decode(Job& job, const Arrived& arrived) {
  const wire::Header& header = arrived.header;
  const std::byte* payload = arrived.data + wire::header_bytes;
  // A payload in the program's buffer makes way for what it decodes to; elements of a scattered
  // type are decoded aside and then scattered.
  memory::Buffer aside;
  void* elements = arguments_.buffer;
  if (!type_->contiguous) {
    aside = job.pool.take(header.raw_bytes());
    elements = aside.data();
  } else if (arrived.in_place) {
    aside = job.pool.take(header.payload_bytes);
    if (aside) std::memcpy(aside.data(), payload, header.payload_bytes);
    payload = aside.data();
  }
  if ((!type_->contiguous || arrived.in_place) && !aside) return MPI_ERR_NO_MEM;
  const Status status = codec::decode(header.spec, header.type, payload, header.payload_bytes,
                                      elements, header.count);
  if (status != Status::ok) {
    trace::say("rank " + std::to_string(job.rank) + ": the frame from rank " +
               std::to_string(arrived.source) + " (" + to_string(header.spec) + ", " +
               std::to_string(header.count) + " " + element_name(header.type) +
               " elements) is corrupt: " + status_text(status));
    return job.corrupt_code;
  }
  return type_->contiguous ? MPI_SUCCESS : scatter(job, aside.data(), header.raw_bytes());
}

/// Lays packed data out as the program's type says.
int Receive::scatter(Job& job, const std::byte* packed, std::size_t bytes) {
  if (type_->contiguous) {
    if (bytes > 0) std::memcpy(arguments_.buffer, packed, bytes);
    return MPI_SUCCESS;
  }
  const auto count = static_cast<MPI_Count>(bytes / type_->packed_unit());
  return relayout(job, packed, {count, type_->packed_type()}, arguments_.buffer,
                  {arguments_.count, type_->layout});
}

}  // namespace mpress::engine
