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

  Status status() const override { return status_; }
  bool can_be_waited_for() const override { return !is_complete_; }
  bool has_begun() const override { return is_complete_; }

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
    const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(of_mpi_));
    if (status().is_ok()) {
      discard(all_.job_, std::span(header_).first(bytes), all_.team_.world_rank(from_));
    }
    note(Status::no_memory);
    return true;
  }

  std::array<std::byte, wire::min_frame_bytes> header_;

 private:
  const int from_;
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
    if (mpi::counted::bytes_of(of_mpi_) == 0) note(Status::device_failed);
    return true;
  }

 private:
  const std::shared_ptr<ReceiveRequest> watched_;
};

class MpiEnvelopes::Sent final : public Matched {
 public:
  Sent(MpiEnvelopes& all, memory::Buffer frame) : Matched(all), frame_(std::move(frame)) {}

  bool advance() override { return is_matched(); }
  void withdraw() override {
    if (request != MPI_REQUEST_NULL) mpi::calls().Wait(&request, MPI_STATUS_IGNORE);
  }

 private:
  const memory::Buffer frame_;  ///< what MPI reads, where that is not the program's
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

std::unique_ptr<Envelope> MpiEnvelopes::send(const BlockData& data, Prepared prepared, int to) {
  const auto [count, type] = typed(data);
  const Items items = items_of(data, type);
  if (prepared.chunks) {
    auto message = std::make_unique<SentApart>(*this, std::move(prepared.chunks));
    const int code = message->operation_.start(mpi::counted::Isend, items, {&to, 1}, comm_, tag_);
    return started(std::move(message), code);
  }
  auto message = std::make_unique<Sent>(*this, std::move(prepared.memory));
  const int code =
      prepared.data
          ? mpi::counted::Isend(prepared.data, static_cast<MPI_Count>(prepared.bytes / items.unit),
                                items.type, to, tag_, comm_, &message->request)
          : mpi::counted::Isend(data.data, count, type, to, tag_, comm_, &message->request);
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
  auto message = std::make_unique<Sent>(*this, memory::Buffer{});
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
