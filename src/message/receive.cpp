#include "message/receive.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

using wire::Parse;

void discard(Messaging& messaging, std::span<const std::byte> message, int source) {
  wire::Header header;
  const Parse parse = wire::read_header(message.data(), message.size(), messaging.nonce, header);
  if (parse != Parse::frame || header.chunk_bytes == 0) return;
  if (!Incoming::link_of(messaging, header, source)) return;
  messaging.chunks.drop(header, source);
  messaging.chunks.follow();
}

void Receive::describe(trace::Called op, void* data, std::int64_t count, const Layout* layout,
                       Outcome* outcome) {
  op_ = op;
  outcome_ = outcome;
  posted_ns_ = trace::timeline.now();
  place_.buffer().describe(data, count, layout, op.algorithm != 0);
}

void Receive::waited_since(std::uint64_t begin_ns) {
  const std::uint64_t end = trace::now_ns();
  waited_ns_ = end - begin_ns;
  trace::note_wait(op_, begin_ns, end);
}

bool Receive::expects_data() const {
  if (place_.kind() == ReceivePlace::Kind::unwatched || is_over_) return false;
  // A message from another GPU may be one chunk, and its sender may wait for this process to take
  // it.
  const ReceiveBuffer& buffer = place_.buffer();
  if (messaging_.chunks.may_come_cut(buffer.capacity())) return true;
  const bool is_on_host = buffer.device() == gpu::host;
  if (is_on_host && messaging_.timings.may_come(buffer.capacity())) return true;
  if (!messaging_.chunks.is_open() ||
      buffer.capacity() < messaging_.links.least_bytes_between_devices) {
    return false;
  }
  return messaging_.gets_device_chunks ||
         (!is_on_host && messaging_.links.are_used_between_devices());
}

bool Receive::may_be_header() {
  place_.locate();
  if (place_.is_contested()) return true;
  ReceivePlace::Beginning copy;
  const std::byte* const beginning = place_.beginning(copy);
  return beginning && wire::announces_chunks(beginning, messaging_.nonce);
}

void Receive::look_at(const std::byte* data, std::size_t bytes) {
  if (is_parsed(bytes)) return;
  parse_ = wire::read_header(data, bytes, messaging_.nonce, header_);
  parsed_bytes_ = bytes;
}

bool Receive::has_frame(std::size_t bytes) {
  if (!is_parsed(bytes)) {
    ReceivePlace::Beginning copy;
    const std::byte* const beginning = place_.beginning(copy);
    if (!beginning) return false;  // deliver() finds out why
    look_at(beginning, bytes);
  }
  return *parse_ != Parse::raw;
}

bool Receive::collect(std::size_t bytes, int source) {
  if (place_.kind() == ReceivePlace::Kind::remote && bytes != wire::min_frame_bytes) return false;
  place_.locate();
  return has_frame(bytes) && begin(source);
}

bool Receive::collect(const std::byte* data, std::size_t bytes, int source) {
  look_at(data, bytes);
  return begin(source);
}

/// Begins to collect what follows a header that has been parsed.
bool Receive::begin(int source) {
  const std::size_t capacity = place_.buffer().capacity();
  if (parse_ != Parse::frame || header_.chunk_bytes == 0 || header_.raw_bytes() > capacity) {
    return false;
  }
  messaging_.has_got_frames.store(true, std::memory_order_relaxed);
  place_.locate();
  if (!Incoming::link_of(messaging_, header_, source)) return false;
  if (place_.buffer().device() != gpu::host) messaging_.forecast.header_came(capacity);
  incoming_ = Incoming::from_link(messaging_, header_, source, destination(), travel_begin_ns_);
  if (!incoming_) return false;
  place_.choose_in_place();
  return true;
}

Destination Receive::destination() {
  Destination to = place_.destination();
  to.kept_in = kept_in_;
  to.is_kept_alone = is_kept_alone_;
  return to;
}

void Receive::save(std::size_t bytes) {
  if (!place_.is_contested() || !place_.is_in_place()) return;
  if (place_.kind() == ReceivePlace::Kind::remote && !wire::is_frame_size(bytes)) return;
  place_.locate();
  const ReceiveBuffer& buffer = place_.buffer();
  if (!buffer.is_readable() && buffer.device() == gpu::host) return;
  if (has_frame(bytes)) place_.save(bytes);
}

void Receive::deliver(std::size_t bytes, int source) {
  ReceivePlace::Beginning beginning;
  const std::byte* data = place_.data();
  if (wire::is_frame_size(bytes)) place_.locate();
  if (place_.kind() != ReceivePlace::Kind::remote) {
    if (bytes == wire::min_frame_bytes) data = place_.beginning(beginning);
    return deliver(data, bytes, source);
  }
  memory::Buffer frame;
  const Status status = copy_frame(bytes, beginning.data(), frame);
  if (status.is_ok()) return deliver(frame ? frame.data() : data, bytes, source);
  result_.is_as_received = true;
  end(status);
}

/// Copies a frame from where the CPU cannot look. A message that is none by its size stays there.
Status Receive::copy_frame(std::size_t bytes, std::byte* beginning, memory::Buffer& frame) {
  if (!wire::is_frame_size(bytes)) return Status::ok;
  if (!is_parsed(bytes)) {
    const Status status = place_.copy_to_host(beginning, wire::min_frame_bytes);
    if (!status.is_ok()) return status;
    look_at(beginning, bytes);
  }
  if (parse_ == Parse::raw) return Status::ok;
  frame = messaging_.pool.take(bytes);
  return frame ? place_.copy_to_host(frame.data(), bytes) : Status::no_memory;
}

void Receive::deliver(const std::byte* data, std::size_t bytes, int source) {
  end(deliver_parsed(data, bytes, source));
}

Status Receive::deliver_parsed(const std::byte* data, std::size_t bytes, int source) {
  const bool is_where_received = data == place_.data();
  if (!is_where_received) place_.locate();
  const int device = place_.buffer().device();
  if (device != gpu::host) messaging_.links.connect(source, device);
  if (messaging_.pacer.active()) {
    messaging_.pacer.arrive(bytes, travel_begin_ns_ ? travel_begin_ns_ : trace::now_ns());
  }
  // A frame would have been copied elsewhere from where the CPU cannot look.
  const bool is_hidden =
      place_.kind() == ReceivePlace::Kind::scattered || place_.kind() == ReceivePlace::Kind::remote;
  if (is_hidden && is_where_received) return deliver_raw(data, bytes, source);
  look_at(data, bytes);
  // MPI could not take the rest and has raised that, although MPICH's calls return success once a
  // handler of the program's has returned.
  if (parse_ == Parse::cut && bytes == place_.buffer().capacity()) parse_ = Parse::raw;
  if (parse_ == Parse::raw) return deliver_raw(data, bytes, source);
  if (parse_ == Parse::frame) {
    messaging_.has_got_frames.store(true, std::memory_order_relaxed);
    return deliver_frame(data, source);
  }
  trace::say("rank " + std::to_string(messaging_.rank) + ": the frame from rank " +
             std::to_string(source) + " is corrupt: bad header");
  return Status::corrupt;
}

Status Receive::deliver_raw(const std::byte* data, std::size_t bytes, int source) {
  trace::Row& row = messaging_.record.row(key(source, Codec::none, trace::Way::whole));
  trace::add_message(row, bytes, bytes);
  trace::add(row.wait_ns, waited_ns_);
  const ReceiveBuffer& buffer = place_.buffer();
  result_.bytes = std::min(bytes, buffer.capacity());
  result_.is_as_received = data == buffer.data();
  if (buffer.is_located() && buffer.device() != gpu::host) {
    messaging_.forecast.other_came(buffer.capacity());
  }
  if (!result_.is_as_received) {
    const Status status = place_.lay_out(data, result_.bytes);
    if (!status.is_ok()) return status;
  }
  note_message(source, Codec::none, bytes, trace::no_number);
  return bytes > buffer.capacity() ? Status::truncated : Status::ok;
}

Status Receive::deliver_frame(const std::byte* data, int source) {
  const bool fits = header_.raw_bytes() <= place_.buffer().capacity();
  if (header_.chunk_bytes == 0) {
    if (!fits) return Status::truncated;
    incoming_ =
        Incoming::from_frame(messaging_, header_, source, destination(), data + wire::header_bytes);
    if (incoming_) return conclude();
    trace::add(messaging_.record.row(key(source, header_.spec.codec, trace::Way::whole)).errors, 1);
    return Status::no_memory;
  }
  if (begin(source)) return conclude();
  if (!Incoming::link_of(messaging_, header_, source)) {
    trace::say("rank " + std::to_string(messaging_.rank) +
               ": a frame announces chunks that cannot come");
    return Status::corrupt;
  }
  messaging_.chunks.drop(header_, source);
  messaging_.chunks.follow();
  // The next message to this buffer must not seem to begin with what is left of this one.
  if (data == place_.data()) std::memset(place_.data(), 0, wire::header_bytes);
  return fits ? Status::no_memory : Status::truncated;
}

/// Waits for the chunks that are still to come; then the message is the program's. Counts it, or
/// that it could not be decoded.
Status Receive::conclude() {
  ReceivePipeline& chunks = incoming_->pipeline();
  const int device = place_.buffer().device();
  chunks.await();
  const std::uint64_t begin = trace::timeline.now();
  const auto is_over = [&] { return chunks.advance(); };
  if (chunks.is_here()) {
    await_device(device, is_over);
  } else {
    messaging_.progress.wait_until(is_over);
  }
  const std::unique_ptr<Incoming> incoming = std::move(incoming_);
  const Chunking& cut = chunks.cut();
  const bool is_whole = chunks.way() == trace::Way::whole;
  if (device != gpu::host && !is_whole) messaging_.links.connect(cut.peer, device);
  const std::size_t wire_bytes = (is_whole ? wire::frame_bytes(chunks.wire_bytes())
                                           : wire::min_frame_bytes + chunks.wire_bytes());
  if (is_whole && trace::timeline.is_on()) {
    trace::timeline.note({.begin_ns = begin,
                          .end_ns = trace::now_ns(),
                          .raw_bytes = cut.bytes(),
                          .wire_bytes = wire_bytes,
                          .peer = cut.peer,
                          .device = device,
                          .kind = trace::Kind::decode,
                          .codec = cut.spec.codec});
  }
  trace::Row& row = messaging_.record.row(key(cut.peer, cut.spec.codec, chunks.way()));
  Status status = chunks.status();
  if (status.is_ok() && !incoming->is_in_place()) {
    status = place_.lay_out(incoming->elements(), cut.bytes());
  }
  if (!status.is_ok()) {
    trace::add(row.errors, 1);
    return status;
  }
  result_.bytes = cut.bytes();
  trace::add_message(row, cut.bytes(), wire_bytes);
  trace::add(row.decode_ns, chunks.decode_ns());
  trace::add(row.wait_ns, waited_ns_);
  trace::add(row.transfer_ns, chunks.transfer_ns());
  if (outcome_ && !is_kept_alone_) outcome_->add(chunks.bound());
  if (cut.encodes() && !is_kept_alone_) {
    const policy::Place place = device != gpu::host ? policy::Place::device : policy::Place::host;
    messaging_.policy.decoded(place, cut.spec.codec, cut.bytes(), chunks.decode_ns());
  }
  note_message(cut.peer, cut.spec.codec, wire_bytes, cut.message);
  return Status::ok;
}

void Receive::renew() {
  place_.renew();
  parse_.reset();
  result_ = {};
  is_over_ = false;
  posted_ns_ = trace::timeline.now();
  if (outcome_) *outcome_ = {};
}

/// Where a message is counted.
trace::Key Receive::key(int source, Codec codec, trace::Way way) const {
  return {trace::Direction::receive,     op_, source, codec, trace::Reason::none, way,
          place_.buffer().is_on_device()};
}

/// Shows a message that is the program's now in the timeline.
void Receive::note_message(int source, Codec codec, std::size_t wire_bytes,
                           std::uint32_t message) const {
  if (!trace::timeline.is_on()) return;
  trace::timeline.note({.begin_ns = posted_ns_,
                        .end_ns = trace::now_ns(),
                        .raw_bytes = result_.bytes,
                        .wire_bytes = wire_bytes,
                        .message = message,
                        .peer = source,
                        .device = place_.buffer().device(),
                        .kind = trace::Kind::receive,
                        .op = op_,
                        .codec = codec});
}

}  // namespace mpress::engine
