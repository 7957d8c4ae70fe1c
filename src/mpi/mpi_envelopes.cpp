#include "mpi/mpi_envelopes.hpp"

#include <array>
#include <span>
#include <utility>

#include "core/plain_layout.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/receive_request.hpp"
#include "mpi/messages/send.hpp"
#include "mpi/objects/relayout.hpp"
#include "mpi/objects/type_info.hpp"
#include "mpi/peek.hpp"
#include "trace/message.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// What MPI gets of a block: items of its type; of a plain layout, of MPI's own.
mpi::TypedCount typed(const BlockData& data) {
  const std::shared_ptr<const Layout>& layout = data.layout;
  if (layout == plain_layout(layout->element)) {
    return {data.count, layout->element ? mpi::type_of(*layout->element) : MPI_BYTE};
  }
  return {data.count, static_cast<const mpi::TypeInfo&>(*layout).handle};
}

/// Of a frame, or a header, of such a block.
Items items_of(const BlockData& data, MPI_Datatype type) {
  const Layout& layout = *data.layout;
  if (layout.element) return {mpi::type_of(*layout.element), layout.packed_unit()};
  return layout.contiguous ? Items{type, layout.size} : Items{MPI_PACKED, 1};
}

/// Memory of messages that are over, of one thread: short ones take less time than malloc() does.
class Cells {
 public:
  static constexpr std::size_t bytes = 160;

  Cells() = default;
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  ~Cells() {
    while (count_ > 0) ::operator delete(free_[--count_]);
    count_ = free_.size();  // what is given back behind it is not kept
  }

  void* take() { return count_ > 0 ? free_[--count_] : ::operator new(bytes); }
  void give(void* cell) {
    if (count_ == free_.size()) return ::operator delete(cell);
    free_[count_++] = cell;
  }

 private:
  std::array<void*, 64> free_;
  std::size_t count_ = 0;
};

thread_local Cells cells;

/// One that could not be started.
class Refused final : public Envelope {
 public:
  explicit Refused(int code) : status_(status_of(code)) {}
  bool advance() override { return true; }
  Status status() const override { return status_; }
  bool can_be_waited_for() const override { return false; }
  void withdraw() override {}

 private:
  const Status status_;
};

/// `message`, which MPI started with `code`.
template <typename Message>
std::unique_ptr<Envelope> started(std::unique_ptr<Message> message, int code) {
  if (code != MPI_SUCCESS) return std::make_unique<Refused>(code);
  return message;
}

}  // namespace

/// A message that is one request of MPI's.
class MpiEnvelopes::Matched : public Envelope {
 public:
  explicit Matched(MpiEnvelopes& all) : all_(all) {}

  static void* operator new(std::size_t bytes) {
    return bytes <= Cells::bytes ? cells.take() : ::operator new(bytes);
  }
  static void operator delete(void* memory, std::size_t bytes) {
    bytes <= Cells::bytes ? cells.give(memory) : ::operator delete(memory);
  }

  Status status() const override { return status_; }
  bool can_be_waited_for() const override { return !is_complete_; }
  bool has_begun() const override { return is_complete_; }
  std::size_t received_bytes() const override {
    return static_cast<std::size_t>(mpi::counted::bytes_of(of_mpi_));
  }

  void withdraw() override {
    if (request == MPI_REQUEST_NULL) return;
    mpi::calls().Cancel(&request);
    mpi::calls().Wait(&request, MPI_STATUS_IGNORE);
  }

  /// MPI_Waitsome of MPICH keeps the processor from the ranks that it waits for.
  void wait() { complete(mpi::calls().Wait(&request, &of_mpi_)); }

  MPI_Request request = MPI_REQUEST_NULL;

 protected:
  /// MPI polls the network for each test: one a round is enough for all messages.
  bool is_matched() {
    if (is_complete_) return true;
    if (all_.has_mpi_proceeded_ && !all_.job_.peek.may_be_complete(request)) return false;
    all_.has_mpi_proceeded_ = true;
    int is_complete = 0;
    const int code = mpi::test(&request, &is_complete, &of_mpi_);
    if (code != MPI_SUCCESS || is_complete != 0) complete(code);
    return is_complete_;
  }
  void complete(int code) {
    is_complete_ = true;
    note(status_of(code));
  }
  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }

  MpiEnvelopes& all_;
  MPI_Status of_mpi_{};

 private:
  bool is_complete_ = false;  ///< for MPI, which gave `of_mpi_`
  Status status_;
};

/// There is no memory for what comes, but for a header.
class MpiEnvelopes::Discarded final : public Matched {
 public:
  Discarded(MpiEnvelopes& all, int from) : Matched(all), from_(from) {}

  bool advance() override {
    if (!is_matched()) return false;
    if (status().is_ok()) {
      const auto header = std::span(header_).first(received_bytes());
      discard(all_.job_, header, all_.team_.world_rank(from_));
    }
    note(Status::no_memory);
    return true;
  }

  std::array<std::byte, wire::min_frame_bytes> header_;

 private:
  const int from_;
};

/// Bytes, whatever they mean to who receives them.
class MpiEnvelopes::ReceivedBytes final : public Matched {
 public:
  using Matched::Matched;

  bool advance() override {
    if (!is_matched()) return false;
    if (status().is_ok() && received_bytes() == 0) note(Status::device_failed);  // of its sender
    return true;
  }
};

/// What comes may be a frame, or a header, where `watched` is set.
class MpiEnvelopes::Received final : public Matched {
 public:
  Received(MpiEnvelopes& all, std::shared_ptr<ReceiveRequest> watched)
      : Matched(all), watched_(std::move(watched)) {}

  bool has_come() const override {
    if (watched_ && watched_->is_followed()) return watched_->is_over();
    const Incoming* const incoming = watched_ ? watched_->receive.core().incoming() : nullptr;
    return has_begun() && !(incoming && !incoming->has_come());
  }

  bool advance() override {
    // One that another receive overlaps is in the progress list.
    if (watched_ && watched_->is_followed() && !watched_->is_over()) return false;
    if (!is_matched()) return false;
    if (!status().is_ok()) return true;
    if (watched_ && !watched_->is_followed()) {
      watched_->begin(MPI_REQUEST_NULL);  // MPI has completed it
      MpiReceive& receive = watched_->receive;
      const bool collects = receive.core().incoming() || receive.collects(of_mpi_);
      if (collects && !receive.core().advance()) return false;
    }
    if (watched_) note(status_of(watched_->finish(all_.job_, of_mpi_).code));
    // Its sender could not send it.
    if (received_bytes() == 0) note(Status::device_failed);
    return true;
  }

 private:
  const std::shared_ptr<ReceiveRequest> watched_;
};

/// A block that is looked at once it has come.
class MpiEnvelopes::LikelyRaw final : public Matched {
 public:
  LikelyRaw(MpiEnvelopes& all, const BlockData& place, int from, const Receiving& how)
      : Matched(all), place_(place), from_(from), called_(how.called), outcome_(how.outcome) {}

  bool has_come() const override { return has_begun() && !(incoming() && !incoming()->has_come()); }
  bool needs_host() const override { return incoming() && incoming()->needs_host(); }

  bool advance() override {
    if (framed_) return end_framed();
    if (!is_matched()) return false;
    if (!status().is_ok()) return true;
    const std::size_t bytes = received_bytes();
    if (bytes == 0) {
      note(Status::device_failed);  // its sender could not send it
    } else if (is_frame(bytes)) {
      return begin_framed(bytes);
    } else {
      const trace::Key key{trace::Direction::receive, called_, all_.team_.world_rank(from_)};
      trace::add_message(all_.job_.record.row(key), bytes, bytes);
    }
    return true;
  }

 private:
  const Incoming* incoming() const { return framed_ ? framed_->core().incoming() : nullptr; }

  bool is_frame(std::size_t bytes) const {
    wire::Header header;
    return wire::is_frame_size(bytes) && place_.layout->contiguous &&
           wire::read_header(static_cast<const std::byte*>(place_.data), bytes, all_.job_.nonce,
                             header) != wire::Parse::raw;
  }

  bool begin_framed(std::size_t bytes) {
    const auto [count, type] = typed(place_);
    framed_ = std::make_unique<MpiReceive>(all_.job_);
    framed_->describe(called_, {place_.data, count, type, all_.comm_, outcome_});
    const auto* const data = static_cast<const std::byte*>(place_.data);
    if (!framed_->collects(data, bytes, from_)) framed_->settle(data, bytes, of_mpi_);
    return end_framed();
  }

  bool end_framed() {
    if (incoming() && !framed_->core().advance()) return false;
    note(status_of(framed_->deliver(of_mpi_)));
    return true;
  }

  const BlockData& place_;
  const int from_;
  const trace::Called called_;
  Outcome* const outcome_;
  std::unique_ptr<MpiReceive> framed_;  ///< what came encoded, or whose data follows
};

class MpiEnvelopes::Sent : public Matched {
 public:
  using Matched::Matched;

  bool advance() override { return is_matched(); }
  void withdraw() override {
    if (request != MPI_REQUEST_NULL) mpi::calls().Wait(&request, MPI_STATUS_IGNORE);
  }
};

class MpiEnvelopes::SentFrame final : public Sent {
 public:
  SentFrame(MpiEnvelopes& all, memory::Buffer frame) : Sent(all), frame_(std::move(frame)) {}

 private:
  const memory::Buffer frame_;  ///< what MPI reads
};

/// A message whose beginnings go to MPI, while its data travel apart.
class MpiEnvelopes::SentApart final : public Envelope {
 public:
  SentApart(MpiEnvelopes& all, std::unique_ptr<Send> send)
      : operation_(all.job_, std::move(send), nullptr) {}

  bool advance() override {
    if (!operation_.advance()) return false;
    status_ = status_of(operation_.ending().code);
    return true;
  }
  Status status() const override { return status_; }
  bool can_be_waited_for() const override { return false; }
  void withdraw() override {}
  bool needs_host() const override { return operation_.needs_host(); }
  bool is_offered() const override { return operation_.is_offered(); }
  void await(bool is_awaited) override { operation_.await(is_awaited); }
  std::optional<std::uint64_t> operation() const override { return operation_.operation(); }

  SendOperation operation_;

 private:
  Status status_;
};

MpiEnvelopes::MpiEnvelopes(Job& job, const Team& team, MPI_Comm comm, int tag)
    : job_(job), team_(team), comm_(comm), tag_(tag) {}

/// No probe asks for messages of this communicator, so the receive goes straight to MPI.
std::unique_ptr<Envelope> MpiEnvelopes::receive(const BlockData& place, int from,
                                                const Receiving& how) {
  if (!place.data && place.layout->contiguous) {
    auto message = std::make_unique<Discarded>(*this, from);
    std::span<std::byte> header = message->header_;
    const int code = mpi::counted::Irecv(header.data(), static_cast<MPI_Count>(header.size()),
                                         MPI_BYTE, from, tag_, comm_, &message->request);
    return started(std::move(message), code);
  }
  const auto [count, type] = typed(place);
  if (how.content == Content::likely_raw_block) {
    auto message = std::make_unique<LikelyRaw>(*this, place, from, how);
    const int code =
        mpi::counted::Irecv(place.data, count, type, from, tag_, comm_, &message->request);
    return started(std::move(message), code);
  }
  if (how.content == Content::bytes) {
    auto message = std::make_unique<ReceivedBytes>(*this);
    const int code =
        mpi::counted::Irecv(place.data, count, type, from, tag_, comm_, &message->request);
    return started(std::move(message), code);
  }
  const ReceiveArguments arguments{place.data, count, type, comm_, how.outcome};
  ReceiveArguments posted = arguments;
  std::shared_ptr<ReceiveRequest> watched;
  if (MpiReceive::may_need_watching(job_, arguments, how.may_be_encoded)) {
    watched = std::make_shared<ReceiveRequest>(job_);
    watched->receive.core().keep_in(how.kept_in, how.is_kept_alone);
    if (watched->receive.watch(how.called, arguments, how.may_be_encoded)) {
      watched->claim_buffer();
      if (job_.pacer.active()) watched->receive.core().travels_from(trace::now_ns());
      posted = watched->receive.posted();
    } else {
      watched.reset();
    }
  }
  auto message = std::make_unique<Received>(*this, watched);
  const int code = mpi::counted::Irecv(posted.buffer, posted.count, posted.type, from, tag_,
                                       posted.comm, &message->request);
  if (code == MPI_SUCCESS && watched) watched->begin(message->request);
  return started(std::move(message), code);
}

std::unique_ptr<Envelope> MpiEnvelopes::send(const BlockData& data, int to) {
  const auto [count, type] = typed(data);
  auto message = std::make_unique<Sent>(*this);
  const int code = mpi::counted::Isend(data.data, count, type, to, tag_, comm_, &message->request);
  return started(std::move(message), code);
}

std::unique_ptr<Envelope> MpiEnvelopes::send(const BlockData& data, Prepared prepared, int to) {
  if (!prepared.chunks && !prepared.data) return send(data, to);
  const Items items = items_of(data, typed(data).type);
  if (prepared.chunks) {
    auto message = std::make_unique<SentApart>(*this, std::move(prepared.chunks));
    const int code = message->operation_.start(mpi::counted::Isend, items, {&to, 1}, comm_, tag_);
    return started(std::move(message), code);
  }
  auto message = std::make_unique<SentFrame>(*this, std::move(prepared.memory));
  const int code =
      mpi::counted::Isend(prepared.data, static_cast<MPI_Count>(prepared.bytes / items.unit),
                          items.type, to, tag_, comm_, &message->request);
  return started(std::move(message), code);
}

std::unique_ptr<Envelope> MpiEnvelopes::send(std::unique_ptr<Send> send, ElementType type,
                                             std::span<const int> readers) {
  auto message = std::make_unique<SentApart>(*this, std::move(send));
  const Items items{mpi::type_of(type), element_size(type)};
  message->operation_.start(mpi::counted::Isend, items, readers, comm_, tag_);
  return message;
}

std::unique_ptr<Envelope> MpiEnvelopes::send_nothing(int to) {
  auto message = std::make_unique<Sent>(*this);
  const int code = mpi::counted::Isend(nullptr, 0, MPI_BYTE, to, tag_, comm_, &message->request);
  return started(std::move(message), code);
}

std::unique_ptr<Envelopes> CommTeam::envelopes(Messaging& messaging, int tag) const {
  return std::make_unique<MpiEnvelopes>(static_cast<Job&>(messaging), *this, comm_, tag);
}

void MpiEnvelopes::wait(Envelope& one) {
  static_cast<Matched&>(one).wait();
  has_mpi_proceeded_ = true;
}

}  // namespace mpress::engine
