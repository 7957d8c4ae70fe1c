#include "engine/p2p/parcel_send.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/parcel_outlet.hpp"
#include "engine/p2p/send_message.hpp"
#include "link/route.hpp"
#include "mpi/counted.hpp"
#include "mpi/relayout.hpp"

namespace mpress::engine {
namespace {

struct Reader {
  int rank;   ///< in the communicator
  int world;  ///< in MPI_COMM_WORLD
};

/// What MPI sends lives in the parcel.
class LentSend final : public Request {
 public:
  explicit LentSend(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {}
  Ending finish(Job&, MPI_Status&) override { return {}; }

 private:
  const std::shared_ptr<const void> owner_;
};

/// Slots of links, and headers that say which are whose.
class ParcelSend final : public Request {
 public:
  ParcelSend(Job& job, std::shared_ptr<Parcel> parcel, std::shared_ptr<mpi::CommInfo> comm)
      : job_(job),
        parcel_(std::move(parcel)),
        comm_(std::move(comm)),
        operation_(job.mpi_link.next_operation()) {}

  /// Finds slots for `readers`, and removes those that it has some for. Where `all`, by MPI if by
  /// no other link.
  void plan(std::vector<Reader>& readers, bool all);
  bool is_empty() const { return headers_.empty(); }

  /// Hands the headers to MPI, and counts the messages. Returns an MPI error code, which is raised.
  int start(const Message& message, const SendArguments& arguments, int tag,
            std::uint64_t begin_ns);

  void open_request(MPI_Request* request);

  /// True once the elements are not needed any more, and all is published or will not come.
  bool advance_data();
  bool advance() override;
  bool needs_host() const override {
    return !is_sent_ && !parcel_->is_published_by_device() &&
           (outlets_.empty() ||
            std::ranges::any_of(outlets_, [](const auto& one) { return one->needs_host(); }));
  }
  bool may_be_late(const Job&) const override { return true; }
  bool only_mpress_completes() const override { return true; }
  Ending finish(Job&, MPI_Status&) override;
  bool must_end() const override { return !is_sent_; }
  void abandon() override;

 private:
  struct Header {
    Reader reader;
    trace::Way way;
    std::uint64_t route;
    trace::Row* row = nullptr;
    trace::Span span = {};
    MPI_Request request = MPI_REQUEST_NULL;
    std::array<std::byte, wire::min_frame_bytes> bytes = {};
  };
  bool reserve(link::Link& link, std::span<const Reader> readers);
  void take_home(std::vector<Reader>& readers);

  Job& job_;
  const std::shared_ptr<Parcel> parcel_;
  const std::shared_ptr<mpi::CommInfo> comm_;
  const std::uint64_t operation_;
  std::vector<std::unique_ptr<ParcelOutlet>> outlets_;
  std::vector<std::unique_ptr<Header>> headers_;
  bool is_sent_ = false;
  int code_ = MPI_SUCCESS;
  OpenRequest request_;
  bool has_request_ = false;
};

trace::Way way_by(link::Kind kind) {
  switch (kind) {
    case link::Kind::mpi: break;
    case link::Kind::peer: return trace::Way::peer;
    case link::Kind::host: return trace::Way::host;
  }
  return trace::Way::chunks;
}

/// Its slots are the parcel's own.
void ParcelSend::take_home(std::vector<Reader>& readers) {
  const Parcel::Home& home = parcel_->home();
  const auto number = static_cast<std::uint32_t>(job_.mpi_link.tag_of(operation_));
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    headers_.push_back(std::make_unique<Header>(
        Header{readers[i], way_by(home.link->kind()),
               link::Route(number, home.link->kind(), home.transfer.first_of(i)).word()}));
  }
  parcel_->announce();
  readers.clear();
}

bool ParcelSend::reserve(link::Link& link, std::span<const Reader> readers) {
  if (readers.empty()) return false;
  std::vector<int> ranks;
  for (const Reader& reader : readers) ranks.push_back(reader.world);
  const bool is_mpi = link.kind() == link::Kind::mpi;
  const Chunking& cut = parcel_->cut();
  link::Reservation wanted{ranks, parcel_->device(), cut.chunks(), parcel_->longest(), operation_};
  wanted.like = cut.event(trace::Kind::wire, 0, 0);
  wanted.like.raw_bytes = 0;
  wanted.like.message = static_cast<std::uint32_t>(job_.mpi_link.tag_of(operation_));
  wanted.is_lent = is_mpi && parcel_->device() == gpu::host;
  // Where nothing else is left. What is there is bounded by the rounds of a call.
  wanted.may_exceed = is_mpi;
  if (is_mpi && !wanted.is_lent) wanted.account = &job_.held_for_mpi;
  link::Transfer transfer;
  if (!link.reserve(wanted, transfer)) return false;
  link.lay_out(transfer);
  outlets_.push_back(std::make_unique<ParcelOutlet>(job_, link, transfer, parcel_, wanted.is_lent));
  const auto number = static_cast<std::uint32_t>(job_.mpi_link.tag_of(operation_));
  for (std::uint32_t i = 0; i < readers.size(); ++i) {
    const std::uint32_t first = is_mpi ? transfer.first : transfer.first_of(i);
    headers_.push_back(std::make_unique<Header>(
        Header{readers[i], way_by(link.kind()), link::Route(number, link.kind(), first).word()}));
  }
  return true;
}

/// Those that a link reaches share slots; with others it connects when they ask for some.
void ParcelSend::plan(std::vector<Reader>& readers, bool all) {
  if (parcel_->home().link) return take_home(readers);
  const bool may_be_linked = parcel_->device() != gpu::host && job_.chunks.is_open() &&
                             parcel_->cut().bytes() >= job_.least_peer_bytes &&
                             parcel_->cut().chunk_bytes <= wire::max_chunk_bytes;
  for (link::Link* link :
       {static_cast<link::Link*>(&job_.peer_link), static_cast<link::Link*>(&job_.host_link)}) {
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
  if (all && reserve(job_.mpi_link, readers)) readers.clear();
}

int ParcelSend::start(const Message& like, const SendArguments& arguments, int tag,
                      std::uint64_t begin_ns) {
  const Chunking& cut = parcel_->cut();
  wire::Header announced{cut.spec, cut.type, cut.count};
  announced.chunk_bytes =
      static_cast<std::uint32_t>(cut.chunks() > 1 ? cut.chunk_bytes : whole_chunk(cut.bytes()));
  announced.may_be_elements = cut.encodes() && cut.may_be_elements;
  Message message = like;
  for (const auto& header : headers_) {
    announced.route = header->route;
    wire::close_frame(announced, job_.nonce, header->bytes.data());
    message.peer = header->reader.world;
    header->row = &count(job_, message,
                         {cut.spec.codec, trace::Reason::none, header->way, trace::Detour::none,
                          link::Route(header->route).number, wire::min_frame_bytes, begin_ns},
                         header->span);
    const std::size_t unit = element_size(cut.type);
    const int code = mpi::counted::Isend(
        header->bytes.data(), static_cast<MPI_Count>(wire::min_frame_bytes / unit),
        cut.type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE, header->reader.rank, tag,
        arguments.comm, &header->request);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

void ParcelSend::open_request(MPI_Request* request) {
  MPI_Status status{};
  mpi::calls().Status_set_elements_x(&status, MPI_BYTE, 0);
  mpi::calls().Status_set_cancelled(&status, 0);
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  if (request_.open(status, request) != MPI_SUCCESS)
    mpi::fatal("MPI refused a generalized request");
  has_request_ = true;
}

bool ParcelSend::advance_data() {
  if (is_sent_) return true;
  bool is_over = parcel_->advance();
  for (const auto& outlet : outlets_) is_over &= outlet->advance();
  job_.follow_chunks();
  if (!is_over) return false;
  is_sent_ = true;
  code_ = parcel_->code();
  for (const auto& outlet : outlets_) {
    if (code_ == MPI_SUCCESS) code_ = outlet->code();
  }
  for (const auto& header : headers_) {
    trace::add(header->row->wire_bytes, parcel_->bytes());
    header->span.add_wire_bytes(parcel_->bytes());
  }
  trace::add(headers_.front()->row->encode_ns, parcel_->claim_took_ns());
  return true;
}

bool ParcelSend::advance() {
  if (!advance_data()) return false;
  for (const auto& header : headers_) {
    if (header->request == MPI_REQUEST_NULL) continue;
    int sent = 0;
    const int code = mpi::calls().Test(&header->request, &sent, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      header->request = MPI_REQUEST_NULL;
      if (code_ == MPI_SUCCESS) code_ = code;
    } else if (!sent) {
      return false;
    }
    header->span = {};
  }
  if (std::exchange(has_request_, false)) request_.finish();
  return true;
}

Ending ParcelSend::finish(Job&, MPI_Status&) {
  return {code_, code_ == MPI_SUCCESS ? nullptr : comm_};
}

void ParcelSend::abandon() {
  for (const auto& header : headers_) {
    if (header->request != MPI_REQUEST_NULL) mpi::calls().Request_free(&header->request);
  }
  if (std::exchange(has_request_, false)) request_.finish();
}

/// The whole parcel as one message of MPI's, to each reader.
int send_frames(Job& job, const Message& like, const SendArguments& arguments,
                const std::shared_ptr<Parcel>& parcel, std::span<const Reader> readers, int tag,
                std::uint64_t begin_ns, std::vector<MPI_Request>& requests) {
  std::size_t bytes = 0;
  const std::byte* const frame = parcel->frame(bytes);
  const Chunking& cut = parcel->cut();
  Message message = like;
  for (const Reader& reader : readers) {
    message.peer = reader.world;
    trace::Span span;
    trace::Row& row = count(job, message,
                            {cut.spec.codec,
                             trace::Reason::none,
                             trace::Way::whole,
                             {},
                             trace::no_number,
                             bytes,
                             begin_ns},
                            span);
    trace::add(row.encode_ns, parcel->claim_took_ns());
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        mpi::counted::Isend(frame, static_cast<MPI_Count>(bytes / element_size(cut.type)),
                            cut.type == ElementType::f32 ? MPI_FLOAT : MPI_DOUBLE, reader.rank, tag,
                            arguments.comm, &request);
    if (code != MPI_SUCCESS) return code;
    requests.push_back(request);
    int complete = 0;
    mpi::calls().Request_get_status(request, &complete, MPI_STATUS_IGNORE);
    if (!complete) job.requests.insert(request, std::make_shared<LentSend>(parcel));
  }
  return MPI_SUCCESS;
}

}  // namespace

int send_parcel(Job& job, const SendCall& call, const SendArguments& arguments,
                const std::shared_ptr<Parcel>& parcel, std::span<const int> ranks, int tag,
                std::vector<MPI_Request>& requests) {
  const std::uint64_t begin = trace::timeline.now();
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  const std::shared_ptr<mpi::CommInfo> comm = type ? mpi::comm_info(arguments.comm) : nullptr;
  if (!comm) return MPI_ERR_COMM;
  const Chunking& cut = parcel->cut();
  const Message message{call,        arguments,        *type, *comm, trace::any_peer,
                        cut.bytes(), parcel->device(), true};
  std::vector<Reader> readers;
  for (const int rank : ranks) readers.push_back({rank, comm->world_rank(rank)});
  auto send = std::make_shared<ParcelSend>(job, parcel, comm);
  const bool is_one = cut.chunks() == 1;
  int failed = MPI_SUCCESS;
  send->plan(readers, !is_one);
  if (is_one && !readers.empty()) {
    await_device(parcel->device(), [&] { return parcel->advance(); });
    std::size_t bytes = 0;
    if (parcel->is_whole() && parcel->frame(bytes)) {
      const int code = send_frames(job, message, arguments, parcel, readers, tag, begin, requests);
      if (code != MPI_SUCCESS) return code;
      readers.clear();
    } else {
      send->plan(readers, true);
    }
  }
  for (const Reader& reader : readers) {  // for want of memory, or as a device failed
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::calls().Isend(nullptr, 0, MPI_BYTE, reader.rank, tag, arguments.comm, &request);
    requests.push_back(request);
    failed = parcel->code() != MPI_SUCCESS ? parcel->code() : MPI_ERR_NO_MEM;
  }
  if (send->is_empty()) return failed == MPI_SUCCESS ? failed : comm->raise(failed);
  const int code = send->start(message, arguments, tag, begin);
  if (code != MPI_SUCCESS) return code;
  // As for any send, what needs this process's host is done at once where no thread does it.
  const bool may_stay = job.progress.is_threaded();
  job.progress.wait_until([&] { return send->advance_data() || may_stay || !send->needs_host(); });
  MPI_Request request = MPI_REQUEST_NULL;
  send->open_request(&request);
  send->follow(job);
  job.requests.insert(request, std::move(send));
  requests.push_back(request);
  return failed == MPI_SUCCESS ? failed : comm->raise(failed);
}

int decode_parcel(Job& job, const Parcel& parcel, const ReceiveArguments& to) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(to.type);
  if (!type) return MPI_ERR_TYPE;
  const Chunking& cut = parcel.cut();
  const Location place = locate(job, to.buffer, *type);
  const bool is_on_device = place.device != gpu::host;
  const auto address = reinterpret_cast<std::uintptr_t>(to.buffer);
  memory::Buffer packed;
  auto* elements = static_cast<std::byte*>(to.buffer);
  if (!type->contiguous ||
      (is_on_device ? address % element_size(cut.type) != 0 : !place.is_readable)) {
    packed =
        is_on_device ? job.devices.take(place.device, cut.bytes()) : job.pool.take(cut.bytes());
    if (!packed) return MPI_ERR_NO_MEM;
    elements = packed.data();
  }
  const From from = parcel.device() == place.device ? From::near : From::host;
  auto decoder = is_on_device ? device_decoder(job, cut, place.device, elements, from)
                              : host_decoder(job, cut, elements);
  if (!decoder) return is_on_device ? refused(job, place.device) : MPI_ERR_NO_MEM;
  ReceivePipeline pipeline(job, cut, std::move(decoder), place.device);
  pipeline.open(parcel);
  await_device(place.device, [&] { return pipeline.advance(); });
  if (pipeline.code() != MPI_SUCCESS || !packed) return pipeline.code();
  if (is_on_device) {
    return unpack_to_device(job, place.device, elements, cut.bytes(), to.buffer, to.count, *type);
  }
  const mpi::Layout laid{static_cast<MPI_Count>(cut.bytes() / type->packed_unit()),
                         type->packed_type()};
  return mpi::relayout(elements, laid, to.buffer,
                       type->contiguous ? laid : mpi::Layout{to.count, type->layout});
}

}  // namespace mpress::engine
