#include "engine/receive.hpp"

#include <climits>
#include <cstdio>
#include <cstring>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "memory/kind.hpp"

namespace mpress::engine {

/// A message as MPI delivered it.
struct Receive::Arrived {
  const std::byte* data;
  std::size_t bytes;
  int source;  ///< in MPI_COMM_WORLD
  wire::Header header;
};

bool Receive::watch(Job& job, trace::Op op, const ReceiveArguments& arguments) {
  if (arguments.count <= 0) return false;
  type_ = type_info(arguments.type);
  if (!type_) return false;
  capacity_ = static_cast<std::size_t>(arguments.count) * type_->size;
  if (capacity_ < wire::header_bytes) return false;
  comm_ = comm_info(arguments.comm);
  if (!comm_ || comm_->inter) return false;
  if (memory::kind_of(arguments.buffer) == memory::Kind::device) return false;
  if (!type_->contiguous) {
    // Scattered types that are no float runs cannot match what is sent compressed.
    if (!type_->element) return false;
    const std::size_t elements = capacity_ / element_size(*type_->element);
    if (elements > INT_MAX) return false;
    staging_ = job.pool.take(capacity_);
    if (!staging_) return false;
    staged_type_ = *type_->element == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE;
    staged_count_ = static_cast<int>(elements);
  }
  arguments_ = arguments;
  op_ = op;
  return true;
}

int Receive::deliver(Job& job, MPI_Status& status) {
  const link::MpiCalls& mpi = link::mpi();
  int cancelled = 0;
  MPI_Count bytes = 0;
  mpi.Test_cancelled(&status, &cancelled);
  if (cancelled || status.MPI_SOURCE == MPI_PROC_NULL) return MPI_SUCCESS;
  mpi.Get_elements_x(&status, MPI_BYTE, &bytes);
  Arrived arrived{static_cast<const std::byte*>(buffer()), static_cast<std::size_t>(bytes),
                  comm_->world_rank(status.MPI_SOURCE), {}};
  if (job.pacer.active()) {
    job.pacer.arrive(arrived.bytes, travel_begin_ns_ ? travel_begin_ns_ : trace::now_ns());
  }
  switch (wire::read_header(arrived.data, arrived.bytes, job.nonce, arrived.header)) {
    case wire::Parse::raw: return deliver_raw(job, arrived);
    case wire::Parse::frame: return deliver_frame(job, arrived, status);
    case wire::Parse::corrupt: break;
  }
  std::fprintf(stderr, "mpress: rank %d: the frame from rank %d is corrupt: bad header\n", job.rank,
               arrived.source);
  return job.corrupt_code;
}

int Receive::deliver_raw(Job& job, const Arrived& arrived) {
  trace::Row& row = job.record.row({trace::Direction::receive, op_, arrived.source});
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, arrived.bytes);
  trace::add(row.wire_bytes, arrived.bytes);
  trace::add(row.wait_ns, waited_ns_);
  return staging_ ? unpack(job, arrived.data, arrived.bytes) : MPI_SUCCESS;
}

int Receive::deliver_frame(Job& job, const Arrived& arrived, MPI_Status& status) {
  const std::size_t raw_bytes = arrived.header.raw_bytes();
  if (raw_bytes > capacity_) return MPI_ERR_TRUNCATE;
  const Codec codec = arrived.header.spec.codec;
  trace::Row& row = job.record.row({trace::Direction::receive, op_, arrived.source, codec});
  const std::uint64_t begin = trace::now_ns();
  const int code = decode(job, arrived);
  const std::uint64_t took = trace::now_ns() - begin;
  if (code != MPI_SUCCESS) {
    trace::add(row.errors, 1);
    return code;
  }
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, raw_bytes);
  trace::add(row.wire_bytes, arrived.bytes);
  trace::add(row.wait_ns, waited_ns_);
  trace::add(row.decode_ns, took);
  job.policy.decoded(codec, raw_bytes, took);
  link::mpi().Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(raw_bytes));
  return MPI_SUCCESS;
}

int Receive::decode(Job& job, const Arrived& arrived) {
  const wire::Header& header = arrived.header;
  const std::byte* payload = arrived.data + wire::header_bytes;
  // Where the frame lies in the program's buffer, the payload makes way for what it decodes to;
  // where it lies in staging, what it decodes to is packed and still to be unpacked.
  memory::Buffer aside =
      job.pool.take(staging_ ? header.raw_bytes() : static_cast<std::size_t>(header.payload_bytes));
  if (!aside) return MPI_ERR_NO_MEM;
  void* elements = aside.data();
  if (!staging_) {
    std::memcpy(aside.data(), payload, header.payload_bytes);
    payload = aside.data();
    elements = arguments_.buffer;
  }
  const Status status = codec::decode(header.spec, header.type, payload, header.payload_bytes,
                                      elements, header.count);
  if (status != Status::ok) {
    std::fprintf(stderr, "mpress: rank %d: the frame from rank %d (%s, %llu %s elements) is corrupt: %s\n",
                 job.rank, arrived.source, to_string(header.spec).c_str(),
                 static_cast<unsigned long long>(header.count), element_name(header.type),
                 status_text(status));
    return job.corrupt_code;
  }
  return staging_ ? unpack(job, aside.data(), header.raw_bytes()) : MPI_SUCCESS;
}

/// Scatters packed elements over the program's type by a message to ourselves: unlike MPI_Unpack
/// that also takes a last, partly filled item.
int Receive::unpack(Job& job, const std::byte* packed, std::size_t bytes) {
  static std::atomic<unsigned> next_tag{0};
  const int tag = static_cast<int>(next_tag.fetch_add(1, std::memory_order_relaxed) % 32768);
  const auto count = static_cast<int>(bytes / element_size(*type_->element));
  return link::mpi().Sendrecv(packed, count, staged_type_, 0, tag, arguments_.buffer,
                              arguments_.count, arguments_.type, 0, tag, job.self,
                              MPI_STATUS_IGNORE);
}

}  // namespace mpress::engine
