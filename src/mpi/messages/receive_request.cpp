#include "mpi/messages/receive_request.hpp"

#include <utility>

#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/progress_hook.hpp"
#include "mpi/requests/freed.hpp"

namespace mpress::engine {

int ReceiveRequest::open_request(const MPI_Status& status, MPI_Request* request) {
  const int code = open_.open(status, request);
  is_open_ = code == MPI_SUCCESS;
  return code;
}

bool ReceiveRequest::may_be_late(const Job&) const { return is_open_ || expects_data(); }

bool ReceiveRequest::advance_receive() {
  if (is_left_to_call_) return true;
  const BufferLook look(*this);
  if (!is_open_) {
    return receive.core().result() || !expects_data() || receive.is_all_there(request_);
  }
  if (!receive.core().advance()) return false;
  end_open();
  return true;
}

void ReceiveRequest::end_open() {
  if (!is_aside() && !receive.core().result()) receive.deliver(open_.status());
  open_.finish();
  is_open_ = false;
}

void ReceiveRequest::note_arrival(MPI_Request request) {
  // See PersistentReceive::advance().
  if (is_persistent() || !job_.peek.is_possible()) return;
  if (!job_.peek.is_complete(request)) receive.core().travels_from(0);
}

bool ReceiveRequest::advance() { return advance_receive(); }

Ending ReceiveRequest::finish(Job&, MPI_Status& status) {
  const int code = receive.deliver(status);
  if (!is_persistent()) leave_buffer();
  return {code, receive.must_raise(code) ? receive.comm() : nullptr};
}

bool ReceiveRequest::settle(Job& job, MPI_Request request) {
  if (!job.peek.is_complete_already(request)) return false;
  if (receive.core().result()) return true;
  if (!receive.is_all_there(request)) return false;
  MPI_Status status;
  if (job.peek.status(request, status) == MPI_SUCCESS) receive.deliver(status);
  return true;
}

void ReceiveRequest::claim_buffer() {
  const ReceivePlace& place = receive.core().place();
  if (!place.is_in_place() || !job_.may_get_frames()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(place.data());
  if (job_.in_place.add(begin, place.buffer().capacity(),
                        std::static_pointer_cast<ReceiveRequest>(shared_from_this()))) {
    claimed_at_ = begin;
  } else {
    avoid_overlap(job_, receive);
  }
}

void ReceiveRequest::leave_buffer() {
  if (claimed_at_ != 0) job_.in_place.remove(std::exchange(claimed_at_, 0));
}

/// Who begins it, and a call that completes it already, look at it themselves.
bool ReceiveRequest::contest() {
  receive.core().place().contest();
  if (is_over()) return look_again();
  const bool is_others = !is_followed() && (request_ == MPI_REQUEST_NULL || is_claimed());
  if (is_others || (!is_persistent() && !job_.peek.is_possible())) return false;
  follow(job_);
  return is_followed();
}

/// Its last look may have left a frame in the buffer that nobody contested then: puts it back into
/// the progress list, once, unless a call completes it. A call that claims it from here on sees
/// that it is not over.
bool ReceiveRequest::look_again() {
  if (is_persistent() || !is_filed_ || !job_.peek.is_possible()) return false;
  if (has_looked_again_.exchange(true)) return true;
  renew();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  is_left_to_call_ = is_claimed();
  enter(job_);
  return !is_left_to_call_;
}

/// Looks at it now, and lets MPI receive nothing else meanwhile. Where another thread is advancing
/// it, a look that begins later is waited for.
bool ReceiveRequest::is_filling() const {
  const std::uint32_t begun = begun_looks_.load();
  const mpi::HookRules rules;
  job_.progress.advance_one(*this);
  return !is_over() && left_at_look_.load(std::memory_order_acquire) <= begun;
}

void avoid_overlap(Job& job, MpiReceive& receive) {
  const ReceivePlace& place = receive.core().place();
  if (job.in_place.empty() || !place.is_in_place()) return;
  const auto overlapping = job.in_place.overlapping(reinterpret_cast<std::uintptr_t>(place.data()),
                                                    place.buffer().capacity());
  if (overlapping.empty()) return;
  receive.stage_aside();
  for (const auto& other : overlapping) other->contest();
}

void file(Job& job, MPI_Request request, std::shared_ptr<ReceiveRequest> entry) {
  entry->begin(request);
  entry->note_filed();
  entry->receive.outlive_call();
  // While no message's data has ever followed its header, waiting is left to MPI.
  const bool is_contested = entry->receive.core().place().is_contested();
  if (entry->only_mpress_completes() || is_contested || job.expects_data()) entry->follow(job);
  job.requests.insert(request, std::move(entry));
}

int ExchangeRequest::send(Outgoing outgoing, int tag) {
  const int code =
      start_send(job_, std::move(outgoing), mpi::counted::Isend, tag, &header_, &started_);
  is_sending_.store(started_.operation || header_ != MPI_REQUEST_NULL, std::memory_order_release);
  return code;
}

void ExchangeRequest::complete_send_alone() {
  if (started_.operation) started_.operation->follow(job_);
  if (header_ == MPI_REQUEST_NULL) return;
  std::shared_ptr<Request> frame = std::move(started_.frame);
  if (!frame) frame = std::make_shared<FrameSend>(memory::Buffer());
  complete_freed(job_, std::exchange(header_, MPI_REQUEST_NULL), std::move(frame));
}

bool ExchangeRequest::advance() {
  const bool is_sent = advance_send();
  return advance_receive() && is_sent;
}

bool ExchangeRequest::advance_send() {
  if (!has_send()) return true;
  if (started_.operation) {
    if (!started_.operation->advance()) return false;
    sent_ = started_.operation->ending();
  } else {
    int sent = 0;
    bool is_raised = false;
    const int code = mpi::test(&header_, &sent, MPI_STATUS_IGNORE, &is_raised);
    if (code == MPI_SUCCESS && sent == 0) return false;
    if (code != MPI_SUCCESS) sent_ = {code, is_raised ? nullptr : receive.comm()};
  }
  is_sending_.store(false, std::memory_order_release);
  return true;
}

Ending ExchangeRequest::finish(Job& job, MPI_Status& status) {
  const Ending received = ReceiveRequest::finish(job, status);
  return received.code == MPI_SUCCESS ? sent_ : received;
}

}  // namespace mpress::engine
