// Receives that the program completes later.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "mpi/job/job.hpp"
#include "mpi/messages/mpi_receive.hpp"
#include "mpi/messages/send.hpp"
#include "mpi/requests/finished_request.hpp"
#include "mpi/requests/request.hpp"

namespace mpress::engine {

/// A receive that MPI has posted, or whose message a probe had taken before.
class ReceiveRequest : public Request, public InPlaceReceive {
 public:
  explicit ReceiveRequest(Job& job, bool is_persistent = false)
      : Request(is_persistent), receive(job), job_(job) {}

  ~ReceiveRequest() override { leave_buffer(); }

  MpiReceive receive;

  /// After MpiReceive::watch(), before MPI gets the receive: see message/in_place.hpp.
  void claim_buffer();

  bool contest() override;
  bool is_filling() const override;

  /// MPI has begun it as `request`.
  void begin(MPI_Request request) { request_ = request; }

  /// It is the program's: calls that complete it claim it.
  void note_filed() { is_filed_ = true; }

  /// A probe had its message, and the receive is collecting the rest: makes the program's request,
  /// which completes when all is there. `status` is the header's. Returns MPI's error code.
  int open_request(const MPI_Status& status, MPI_Request* request);

  /// After a probe had its message: is there work left, or an error to tell?
  bool must_be_kept() const { return is_open_ || receive.failed(); }

  bool advance() override;
  bool needs_host() const override {
    const Incoming* const incoming = receive.core().incoming();
    return incoming && incoming->needs_host();
  }
  bool may_be_late(const Job& job) const override;
  bool only_mpress_completes() const override { return is_open_; }
  void note_arrival(MPI_Request request) override;
  Ending finish(Job& job, MPI_Status& status) override;
  bool settle(Job& job, MPI_Request request) override;
  bool is_aside() const override {
    const ReceivePlace& place = receive.core().place();
    return place.kind() == ReceivePlace::Kind::aside ||
           (place.kind() == ReceivePlace::Kind::remote && !place.is_in_place());
  }
  bool must_end() const override { return is_open_ || receive.core().incoming(); }

 protected:
  /// May the data of its message follow a header, or has what comes to be brought to safety?
  bool expects_data() const {
    return receive.core().place().is_contested() || receive.core().expects_data();
  }

  void leave_buffer();

  /// Takes what has come. True where the message is all there, or will bring none of that kind.
  bool advance_receive();

  /// The data of an open request are there. In a buffer that it shares, finish() lays them out, as
  /// others have to leave it before.
  void end_open();

  /// A look at what has come, by whoever advances the receive: see is_filling().
  class BufferLook {
   public:
    explicit BufferLook(ReceiveRequest& request)
        : request_(request), number_(request.begun_looks_.fetch_add(1) + 1) {}
    BufferLook(const BufferLook&) = delete;
    BufferLook& operator=(const BufferLook&) = delete;
    ~BufferLook() {
      const Incoming* const incoming = request_.receive.core().incoming();
      if (incoming && incoming->is_in_place()) return;
      request_.left_at_look_.store(number_, std::memory_order_release);
    }

   private:
    ReceiveRequest& request_;
    const std::uint32_t number_;
  };

  Job& job_;
  std::atomic<MPI_Request> request_ = MPI_REQUEST_NULL;  ///< MPI's
  OpenRequest open_;
  std::uintptr_t claimed_at_ = 0;  ///< where its part of the program's memory begins; 0: none
  bool is_open_ = false;           ///< the program's request is `open_`, and not complete

 private:
  bool look_again();

  bool is_filed_ = false;
  // For other threads, which see no more of the receive. Looks are numbered from 1.
  std::atomic<std::uint32_t> begun_looks_{0};
  std::atomic<std::uint32_t> left_at_look_{0};  ///< the last after which nothing filled the buffer
  std::atomic<bool> has_looked_again_{false};
  std::atomic<bool> is_left_to_call_{false};  ///< that completes it
};

/// For a receive that nobody else can see, as in a blocking call: stages it where it overlaps.
void avoid_overlap(Job& job, MpiReceive& receive);

/// Files a receive that MPI, or open_request(), has begun as `request`.
void file(Job& job, MPI_Request request, std::shared_ptr<ReceiveRequest> entry);

/// MPI_Isendrecv: the request is that of the receive, and completes with both halves.
class ExchangeRequest final : public ReceiveRequest {
 public:
  explicit ExchangeRequest(Job& job) : ReceiveRequest(job) {}

  /// Starts the sending half. Raises; there is nothing to complete where has_send() says no then.
  int send(Outgoing outgoing, int tag);
  bool has_send() const { return is_sending_.load(std::memory_order_acquire); }

  /// The receiving half could not begin: the other is completed all the same, by nobody's request.
  void complete_send_alone();

  bool advance() override;
  bool needs_host() const override {
    return ReceiveRequest::needs_host() || (has_operation() && started_.operation->needs_host());
  }
  bool may_be_late(const Job& job) const override {
    return has_send() || ReceiveRequest::may_be_late(job);
  }
  bool only_mpress_completes() const override { return has_send() || is_open_; }
  bool is_offered() const override { return has_operation() && started_.operation->is_offered(); }
  void await(bool alone) override {
    if (has_operation()) started_.operation->await(alone);
  }
  Ending finish(Job& job, MPI_Status& status) override;

 private:
  bool has_operation() const { return has_send() && started_.operation; }
  bool advance_send();

  /// Until the sending half is over, which one thread finds while others look.
  std::atomic<bool> is_sending_{false};
  Started started_;                        ///< stays as it is
  MPI_Request header_ = MPI_REQUEST_NULL;  ///< of a send without an operation
  Ending sent_;
};

}  // namespace mpress::engine
