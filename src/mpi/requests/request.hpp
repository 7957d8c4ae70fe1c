// What mpress keeps beside a request of MPI's that needs work of its own when it completes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/operation.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

class Job;

/// What came of a request.
struct Ending {
  int code = MPI_SUCCESS;
  /// Where the error is still to be raised; null where MPI, or nobody, raises it.
  std::shared_ptr<mpi::CommInfo> raise_on = nullptr;
};

/// The work that is left on one request beside what MPI does. Each kind is a class: a send whose
/// frame MPI reads, a send whose data follows its header, a receive, an exchange, a staged call.
///
/// MPI may tell that a request is complete while the message is not all there. Such a request is in
/// the progress list, and calls that complete requests hide it from MPI until its operation is
/// over.
class Request : public Operation, public std::enable_shared_from_this<Request> {
 public:
  /// Most kinds need no advance: MPI does it all, and finish() what is left.
  bool advance() override { return true; }

  /// May MPI report it complete while the message is not all there? Such a request has to be in the
  /// progress list before a call looks whether it is complete; see follow().
  virtual bool may_be_late(const Job&) const { return false; }

  /// Is it one that MPI completes only when mpress says so?
  virtual bool only_mpress_completes() const { return false; }

  /// The program waits for this, and for nothing else: what gives its receiver time stops doing so.
  virtual void await(bool /*alone*/) {}

  /// Does it give its receiver time that await() would end?
  virtual bool is_offered() const { return false; }

  /// Is its data laid out in a buffer that another receive may be in place in? Then that is
  /// finished first, as its frame may lie there.
  virtual bool is_aside() const { return false; }

  /// Do reports tell of waits for it?
  virtual bool is_counted() const { return true; }

  /// With a paced link: notes whether the message was there when the program asked for it.
  virtual void note_arrival(MPI_Request) {}

  /// MPI has completed the request without an error, with `status`: what it brought becomes the
  /// program's, and the status tells of that. Raises nothing.
  virtual Ending finish(Job& job, MPI_Status& status) = 0;

  /// MPI_Request_get_status: the same, without the request's end.
  virtual Ending look(Job& job, MPI_Status& status) { return finish(job, status); }

  /// For a call that completes nothing, while nothing may proceed: has MPI completed `request`?
  /// What it brought becomes the program's. Raises nothing.
  virtual bool settle(Job& job, MPI_Request request);

  /// MPI_Cancel of `request`.
  virtual int cancel(MPI_Request* request) {
    return mpi::calls().Cancel(replaced() ? &stand_in_ : request);
  }

  /// The program frees it while it is active: is there anything left that mpress has to do or keep?
  virtual bool outlives_its_request() const { return true; }

  /// Will it end without anything that the program, or another rank's program, has yet to do? MPI
  /// does not end before that.
  virtual bool must_end() const { return false; }

  /// MPI ends, and it is not over: hands what is left to MPI.
  virtual void abandon() {}

  /// What a persistent request does at the end of a round.
  virtual void retire() {}

  /// MPI_Start of a persistent request. Raises. `request` is the program's.
  virtual int start(Job&, MPI_Request* request) { return mpi::calls().Start(request); }

  /// May MPI complete it now? Not while it is followed and not over.
  bool is_ready() const { return !is_followed() || is_over(); }

  bool is_followed() const { return is_followed_.load(std::memory_order_acquire); }

  /// While it lives, this call looks at a request that no other call looks at so, or completes. A
  /// hook of the program's may look from within either.
  class Look {
   public:
    explicit Look(Request& request)
        : request_(request), is_free_(!request.claimed_ && !request.is_looked_at_.exchange(true)) {}
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;
    ~Look() {
      if (is_free_) request_.is_looked_at_ = false;
    }
    explicit operator bool() const { return is_free_; }

   private:
    Request& request_;
    const bool is_free_;
  };

  /// Puts it into the progress list, if it may be late and is not there yet. Any thread may.
  void follow(Job& job);

  /// Persistent requests stay in the table until they are freed.
  bool is_persistent() const { return is_persistent_; }
  /// Started and not complete; always true where not persistent. Other threads may ask.
  bool is_active() const { return is_active_.load(std::memory_order_relaxed); }
  void set_active(bool active) { is_active_.store(active, std::memory_order_relaxed); }

  /// Where mpress started another operation in a persistent request's place, that request: calls
  /// that complete the program's request complete this one instead.
  bool replaced() const { return stand_in_ != MPI_REQUEST_NULL; }
  MPI_Request stand_in() const { return stand_in_; }

  /// A persistent request is over, and inactive until it is started again.
  void end_round() {
    set_active(false);
    stand_in_ = MPI_REQUEST_NULL;
    is_followed_.store(false, std::memory_order_relaxed);
    retire();
  }

 protected:
  /// Has this proceed, whoever waits for anything, until it is over.
  virtual void enter(Job& job);

  explicit Request(bool is_persistent = false)
      : is_persistent_(is_persistent), is_active_(!is_persistent) {}

  /// Is a call about to complete it?
  bool is_claimed() const { return claimed_.load(); }

  MPI_Request stand_in_ = MPI_REQUEST_NULL;

 private:
  friend class RequestTable;
  std::uintptr_t key_ = 0;
  std::atomic<bool> claimed_{false};  ///< see is_claimed()
  std::atomic<bool> is_looked_at_{false};
  std::atomic<bool> is_followed_{false};
  Request* next_ = nullptr;
  std::shared_ptr<Request> self_;  ///< while it is in the table
  const bool is_persistent_;
  std::atomic<bool> is_active_;
};

}  // namespace mpress::engine
