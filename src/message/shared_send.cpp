#include "message/shared_send.hpp"

#include <algorithm>
#include <utility>

#include "codec/float_environment.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

SharedSend::SharedSend(Messaging& messaging, const Message& message,
                       std::shared_ptr<OpaqueBlock> opaque, std::span<const int> ranks)
    : Send(messaging.links.channel.next_operation()),
      messaging_(messaging),
      opaque_(std::move(opaque)),
      number_(static_cast<std::uint32_t>(messaging.links.channel.tag_of(operation()))),
      begin_ns_(trace::timeline.now()) {
  std::vector<Reader> readers;
  for (const int rank : ranks) readers.push_back({readers.size(), rank});
  const bool is_one = opaque_->cut().chunks() == 1;
  plan(readers, message.call, !is_one);
  if (is_one && !readers.empty()) {
    await_device(opaque_->device(), [&] { return opaque_->advance(); });
    if (opaque_->is_whole() && add_frames(message, readers)) {
      readers.clear();
    } else {
      plan(readers, message.call, true);
    }
  }
  if (!readers.empty()) {  // for want of memory, or as a device failed
    const Status status = opaque_->status();
    note(status.is_ok() ? short_of_memory(messaging_, opaque_->device()) : status);
    for (const Reader& reader : readers) beginnings_.push_back({reader.number});
  }
  add_headers(message);
}

/// Finds slots for readers, and removes those that it has some for. Where `all`, by MPI if by no
/// other link. Those that a link reaches share slots; with others it connects when they ask for
/// some.
void SharedSend::plan(std::vector<Reader>& readers, const SendCall& call, bool all) {
  if (opaque_->staging().link) return take_staging(readers);
  const bool may_be_linked =
      opaque_->device() != gpu::host && messaging_.chunks.is_open() &&
      opaque_->cut().bytes() >= messaging_.links.least_bytes_between_devices &&
      opaque_->cut().chunk_bytes <= wire::max_chunk_bytes;
  for (link::Link* const link : messaging_.links.between_devices()) {
    if (!may_be_linked) break;
    const auto others = std::stable_partition(
        readers.begin(), readers.end(), [&](const Reader& one) { return link->reaches(one.rank); });
    std::vector<Reader> left;
    const std::span<const Reader> ready(readers.begin(), others);
    if (!reserve(*link, ready, call)) left.assign(ready.begin(), ready.end());
    for (auto other = others; other != readers.end(); ++other) {
      if (!link->may_reach(other->rank) || !reserve(*link, {&*other, 1}, call))
        left.push_back(*other);
    }
    readers = std::move(left);
  }
  if (all && reserve(messaging_.links.channel, readers, call)) readers.clear();
}

/// Its slots are the block's own.
void SharedSend::take_staging(std::vector<Reader>& readers) {
  const OpaqueBlock::StagingSlots& staging = opaque_->staging();
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    headers_.push_back({readers[i], {number_, staging.link->kind(), staging.transfer.first_of(i)}});
  }
  opaque_->announce();
  readers.clear();
}

bool SharedSend::reserve(link::Link& link, std::span<const Reader> readers, const SendCall& call) {
  if (readers.empty()) return false;
  std::vector<int> ranks;
  for (const Reader& reader : readers) ranks.push_back(reader.rank);
  const bool is_mpi = link.kind() == link::Kind::channel;
  Chunking cut = opaque_->cut();
  cut.message = number_;
  link::Reservation wanted =
      reservation(cut, ranks, opaque_->device(), opaque_->longest(), operation());
  wanted.is_zero_copy = is_mpi && opaque_->device() == gpu::host;
  // Where nothing else is left. What is there is bounded by the rounds of a call.
  wanted.may_exceed = is_mpi;
  if (is_mpi && !wanted.is_zero_copy) wanted.account = &messaging_.links.held_for_channel;
  // Elements as they are take all of it.
  const double share = !cut.encodes() ? 1 : call.coding ? call.coding->share_in_windows : 0;
  const link::Attributes* const about = link::attributes_of(link.kind());
  if (about && about->is_through_host && share != 0) {
    const std::size_t bytes = compute(
        [&] { return static_cast<std::size_t>(share * static_cast<double>(cut.chunk_bytes)); });
    wanted.window = window_chunks(messaging_, std::max<std::size_t>(bytes, 1), call.driven);
  }
  link::Transfer transfer;
  if (!link.reserve(wanted, transfer)) return false;
  link.lay_out(transfer);
  lanes_.emplace_back(messaging_, link, transfer, opaque_->cut())
      .open(opaque_, wanted.is_zero_copy, bool(call.driven));
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    const std::uint32_t first = is_mpi ? transfer.first : transfer.first_of(i);
    headers_.push_back({readers[i], {number_, link.kind(), first}});
  }
  return true;
}

Departure SharedSend::departure(const Message& like, std::size_t wire_bytes) const {
  Departure departure{opaque_->cut().spec.codec, like.call.raw_for.value_or(trace::Reason::none)};
  departure.wire_bytes = wire_bytes;
  departure.begin_ns = begin_ns_;
  departure.loss = opaque_->loss();
  return departure;
}

/// The whole block in one message, to each reader. False where it has no frame.
bool SharedSend::add_frames(const Message& like, std::span<const Reader> readers) {
  std::size_t bytes = 0;
  const std::byte* const frame = opaque_->frame(bytes);
  if (!frame) return false;
  Message message = like;
  const Departure departure = this->departure(like, bytes);
  for (const Reader& reader : readers) {
    message.peer = reader.rank;
    trace::Row& row = count(messaging_, message, departure, spans_.emplace_back());
    trace::add(row.encode_ns, opaque_->claim_took_ns());
    beginnings_.push_back({reader.number, frame, bytes});
  }
  return true;
}

void SharedSend::add_headers(const Message& like) {
  const Chunking& cut = opaque_->cut();
  wire::Header announced{cut.spec, cut.type, cut.count};
  announced.chunk_bytes =
      static_cast<std::uint32_t>(cut.chunks() > 1 ? cut.chunk_bytes : whole_chunk(cut.bytes()));
  announced.may_be_elements = cut.may_be_elements;
  Message message = like;
  Departure departure = this->departure(like, wire::min_frame_bytes);
  departure.number = number_;
  for (Header& header : headers_) {
    announced.route = header.route.word();
    wire::close_frame(announced, messaging_.nonce, header.bytes.data());
    message.peer = header.reader.rank;
    departure.way = link::way_by(header.route.kind);
    header.row = &count(messaging_, message, departure, header.span);
    beginnings_.push_back({header.reader.number, header.bytes.data(), header.bytes.size()});
  }
}

bool SharedSend::needs_host() const {
  if (headers_.empty() || opaque_->is_published_by_device()) return false;
  return lanes_.empty() || std::ranges::any_of(lanes_, &SendPipeline::needs_host);
}

bool SharedSend::advance(bool) {
  if (headers_.empty()) return true;
  bool is_over = opaque_->advance();
  for (SendPipeline& lane : lanes_) is_over &= lane.advance();
  messaging_.chunks.follow();
  if (!is_over) return false;
  note(opaque_->status());
  for (const SendPipeline& lane : lanes_) note(lane.status());
  for (Header& header : headers_) {
    trace::add(header.row->wire_bytes, opaque_->bytes());
    header.span.add_wire_bytes(opaque_->bytes());
  }
  trace::add(headers_.front().row->encode_ns, opaque_->claim_took_ns());
  return true;
}

}  // namespace mpress::engine
