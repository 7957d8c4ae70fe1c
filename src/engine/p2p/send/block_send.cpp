#include "engine/p2p/send/block_send.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "codec/float_environment.hpp"
#include "core/staging.hpp"
#include "engine/job/job.hpp"
#include "link/route.hpp"
#include "message/message.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {
struct BlockSend::Reader {
  int rank;   ///< in the communicator
  int world;  ///< in MPI_COMM_WORLD
};

struct BlockSend::Header {
  Reader reader;
  trace::Way way;
  std::uint64_t route;
  trace::Row* row = nullptr;
  trace::Span span = {};
  std::array<std::byte, wire::min_frame_bytes> bytes = {};
};

namespace {

/// A block as a message to nobody yet, and those of its readers' ranks in MPI_COMM_WORLD. Keeps its
/// handles.
struct Block {
  Block(Job& job, const SendCall& call, const SendArguments& arguments,
        std::span<const int> readers)
      : type(mpi::type_info(arguments.type)), comm(mpi::comm_info(arguments.comm)) {
    if (!type || !comm) return;
    const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
    message.emplace(message_of(call, arguments, *type, *comm, trace::any_peer, bytes,
                               locate(job, arguments.buffer, *type)));
    for (const int reader : readers) ranks.push_back(comm->world_rank(reader));
  }

  const std::shared_ptr<mpi::TypeInfo> type;
  const std::shared_ptr<mpi::CommInfo> comm;
  std::optional<Message> message;
  std::vector<int> ranks;
};

}  // namespace

BlockChoice encode_block(Job& job, const SendCall& call, const SendArguments& arguments,
                         std::span<const int> readers, bool at_once) {
  const Block block(job, call, arguments, readers);
  if (!block.message || readers.empty()) return {};
  return encode_block(job, *block.message, block.ranks, at_once);
}

std::shared_ptr<OpaqueBlock> hold_block(Job& job, const SendCall& call,
                                        const SendArguments& arguments,
                                        std::span<const int> readers) {
  const Block block(job, call, arguments, readers);
  return block.message ? hold_block(job, *block.message, block.ranks) : nullptr;
}

BlockSend::BlockSend(Job& job, const SendCall& call, const SendArguments& arguments,
                     std::shared_ptr<OpaqueBlock> opaque, std::span<const int> ranks, int tag)
    : job_(job),
      opaque_(std::move(opaque)),
      operation_(job.links.channel.next_operation()),
      comm_(arguments.comm),
      tag_(tag),
      reason_(call.raw_for.value_or(trace::Reason::none)),
      driven_(call.driven),
      share_in_windows_(!opaque_->cut().encodes() ? 1
                        : call.coding             ? call.coding->share_in_windows
                                                  : 0),
      begin_ns_(trace::timeline.now()) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  const std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(comm_);
  if (!type || !comm) mpi::fatal("a block has no type, or no communicator");
  const Chunking& cut = opaque_->cut();
  const Message message = message_of(call, arguments, *type, *comm, trace::any_peer, cut.bytes(),
                                     {opaque_->device(), true});
  std::vector<Reader> readers;
  for (const int rank : ranks) readers.push_back({rank, comm->world_rank(rank)});
  const bool is_one = cut.chunks() == 1;
  plan(readers, !is_one);
  if (is_one && !readers.empty()) {
    await_device(opaque_->device(), [&] { return opaque_->advance(); });
    std::size_t bytes = 0;
    if (opaque_->is_whole() && opaque_->frame(bytes)) {
      send_frames(message, readers);
      readers.clear();
    } else {
      plan(readers, true);
    }
  }
  // For want of memory, or as a device failed.
  if (!readers.empty()) tell_failure(readers);
  send_headers(message);
}

BlockSend::~BlockSend() = default;

void BlockSend::post(const std::byte* data, std::size_t bytes, const Reader& reader) {
  const ElementType type = opaque_->cut().type;
  MPI_Request request = MPI_REQUEST_NULL;
  note(mpi::counted::Isend(data, static_cast<MPI_Count>(bytes / element_size(type)),
                           type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE, reader.rank, tag_,
                           comm_, &request));
  if (request != MPI_REQUEST_NULL) requests_.push_back(request);
}

void BlockSend::tell_failure(std::span<const Reader> readers) {
  for (const Reader& reader : readers) post(nullptr, 0, reader);
  const Status status = opaque_->status();
  note(job_.code_of(status.is_ok() ? short_of_memory(job_, opaque_->device()) : status));
}

/// The whole block as one message of MPI's, to each reader.
void BlockSend::send_frames(const Message& like, std::span<const Reader> readers) {
  std::size_t bytes = 0;
  const std::byte* const frame = opaque_->frame(bytes);
  Message message = like;
  for (const Reader& reader : readers) {
    message.peer = reader.world;
    Departure departure{opaque_->cut().spec.codec, reason_};
    departure.wire_bytes = bytes;
    departure.loss = opaque_->loss();
    departure.begin_ns = begin_ns_;
    trace::Row& row = count(job_, message, departure, spans_.emplace_back());
    trace::add(row.encode_ns, opaque_->claim_took_ns());
    post(frame, bytes, reader);
  }
}

/// Its slots are the block's own.
void BlockSend::take_home(std::vector<Reader>& readers) {
  const OpaqueBlock::Home& home = opaque_->home();
  const auto number = static_cast<std::uint32_t>(job_.links.channel.tag_of(operation_));
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    headers_.push_back(std::make_unique<Header>(
        Header{readers[i], way_by(home.link->kind()),
               link::Route(number, home.link->kind(), home.transfer.first_of(i)).word()}));
  }
  opaque_->announce();
  readers.clear();
}

bool BlockSend::reserve(link::Link& link, std::span<const Reader> readers) {
  if (readers.empty()) return false;
  std::vector<int> ranks;
  for (const Reader& reader : readers) ranks.push_back(reader.world);
  const bool is_mpi = link.kind() == link::Kind::channel;
  const auto number = static_cast<std::uint32_t>(job_.links.channel.tag_of(operation_));
  const Chunking& cut = opaque_->cut();
  link::Reservation wanted{ranks, opaque_->device(), cut.chunks(), opaque_->longest(), operation_};
  wanted.like = cut.event(trace::Kind::wire, 0, 0);
  wanted.like.raw_bytes = 0;
  wanted.like.message = number;
  wanted.is_zero_copy = is_mpi && opaque_->device() == gpu::host;
  // Where nothing else is left. What is there is bounded by the rounds of a call.
  wanted.may_exceed = is_mpi;
  if (is_mpi && !wanted.is_zero_copy) wanted.account = &job_.links.held_for_channel;
  const link::Attributes* const about = link::attributes_of(link.kind());
  if (about && about->is_through_host && share_in_windows_ != 0) {
    const std::size_t bytes = compute([&] {
      return static_cast<std::size_t>(share_in_windows_ * static_cast<double>(cut.chunk_bytes));
    });
    wanted.window = window_chunks(job_, std::max<std::size_t>(bytes, 1), driven_);
  }
  link::Transfer transfer;
  if (!link.reserve(wanted, transfer)) return false;
  link.lay_out(transfer);
  lanes_.emplace_back(job_, link, transfer, cut).open(opaque_, wanted.is_zero_copy, bool(driven_));
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    const std::uint32_t first = is_mpi ? transfer.first : transfer.first_of(i);
    headers_.push_back(std::make_unique<Header>(
        Header{readers[i], way_by(link.kind()), link::Route(number, link.kind(), first).word()}));
  }
  return true;
}

/// Finds slots for readers, and removes those that it has some for. Where `all`, by MPI if by no
/// other link. Those that a link reaches share slots; with others it connects when they ask for
/// some.
void BlockSend::plan(std::vector<Reader>& readers, bool all) {
  if (opaque_->home().link) return take_home(readers);
  const bool may_be_linked = opaque_->device() != gpu::host && job_.chunks.is_open() &&
                             opaque_->cut().bytes() >= job_.links.least_bytes_between_devices &&
                             opaque_->cut().chunk_bytes <= wire::max_chunk_bytes;
  for (link::Link* const link : job_.links.between_devices()) {
    if (!may_be_linked) break;
    const auto others =
        std::stable_partition(readers.begin(), readers.end(),
                              [&](const Reader& one) { return link->reaches(one.world); });
    std::vector<Reader> left;
    const std::span<const Reader> ready(readers.begin(), others);
    if (!reserve(*link, ready)) left.assign(ready.begin(), ready.end());
    for (auto other = others; other != readers.end(); ++other) {
      if (!link->may_reach(other->world) || !reserve(*link, {&*other, 1})) left.push_back(*other);
    }
    readers = std::move(left);
  }
  if (all && reserve(job_.links.channel, readers)) readers.clear();
}

void BlockSend::send_headers(const Message& like) {
  const Chunking& cut = opaque_->cut();
  wire::Header announced{cut.spec, cut.type, cut.count};
  announced.chunk_bytes =
      static_cast<std::uint32_t>(cut.chunks() > 1 ? cut.chunk_bytes : whole_chunk(cut.bytes()));
  announced.may_be_elements = cut.may_be_elements;
  Message message = like;
  for (const auto& header : headers_) {
    announced.route = header->route;
    wire::close_frame(announced, job_.nonce, header->bytes.data());
    message.peer = header->reader.world;
    Departure departure{cut.spec.codec, reason_};
    departure.way = header->way;
    departure.number = link::Route(header->route).number;
    departure.wire_bytes = wire::min_frame_bytes;
    departure.begin_ns = begin_ns_;
    departure.loss = opaque_->loss();
    header->row = &count(job_, message, departure, header->span);
    post(header->bytes.data(), header->bytes.size(), header->reader);
  }
}

bool BlockSend::needs_host() const {
  if (is_sent_ || headers_.empty() || opaque_->is_published_by_device()) return false;
  return lanes_.empty() || std::ranges::any_of(lanes_, &SendPipeline::needs_host);
}

/// True once the elements are not needed any more, and all is published or will not come.
bool BlockSend::advance_data() {
  if (is_sent_ || headers_.empty()) return true;
  bool is_over = opaque_->advance();
  for (SendPipeline& lane : lanes_) is_over &= lane.advance();
  job_.chunks.follow();
  if (!is_over) return false;
  is_sent_ = true;
  note(job_.code_of(opaque_->status()));
  for (const SendPipeline& lane : lanes_) note(job_.code_of(lane.status()));
  for (const auto& header : headers_) {
    trace::add(header->row->wire_bytes, opaque_->bytes());
    header->span.add_wire_bytes(opaque_->bytes());
  }
  trace::add(headers_.front()->row->encode_ns, opaque_->claim_took_ns());
  return true;
}

/// While the data waits for its readers they may wait for headers that MPI has not sent yet.
bool BlockSend::advance() {
  const bool is_sent = advance_data();
  std::erase_if(requests_, [this](MPI_Request& request) {
    int sent = 0;
    const int code = mpi::test(&request, &sent, MPI_STATUS_IGNORE);
    note(code);
    return code != MPI_SUCCESS || sent != 0;
  });
  if (!is_sent || !requests_.empty()) return false;
  headers_.clear();
  spans_.clear();
  return true;
}

}  // namespace mpress::engine
