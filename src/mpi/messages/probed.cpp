#include "mpi/messages/probed.hpp"

#include <utility>

#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/message_handle.hpp"
#include "mpi/messages/receive_request.hpp"

namespace mpress::engine {
namespace {

using mpi::counted::bytes_of;

bool is_frame_size(const MPI_Status& status) {
  return wire::is_frame_size(static_cast<std::size_t>(bytes_of(status)));
}

bool matches(int wanted, int wildcard, int value) { return wanted == wildcard || wanted == value; }

}  // namespace

void ProbedMessage::fill(MPI_Status* status) const {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  mpi::calls().Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(raw_bytes));
  mpi::calls().Status_set_cancelled(status, 0);
}

int ProbedMessage::deliver(Job& job, trace::Op op, const ReceiveArguments& arguments,
                           MPI_Status* status) const {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  MpiReceive receive(job);
  ReceiveArguments on_comm = arguments;
  on_comm.comm = comm->comm;
  if (!receive.describe(op, on_comm)) return MPI_ERR_ARG;
  fill(status);
  return receive.settle(data.data(), wire_bytes, *status);
}

int ProbedMessage::deliver_later(ReceiveRequest& entry, MPI_Request* request) const {
  MpiReceive& receive = entry.receive;
  MPI_Status status;
  fill(&status);
  if (!receive.comm()) return comm->raise(MPI_ERR_ARG);
  if (!receive.collects(data.data(), wire_bytes, source)) {
    receive.settle(data.data(), wire_bytes, status);
    return make_finished_request(status, request);
  }
  return entry.open_request(status, request);
}

ProbedMessages::Queue::iterator ProbedMessages::find(const mpi::CommInfo* comm, int source,
                                                     int tag) {
  auto it = queue_.begin();
  while (it != queue_.end() &&
         !((*it)->comm.get() == comm && matches(source, MPI_ANY_SOURCE, (*it)->source) &&
           matches(tag, MPI_ANY_TAG, (*it)->tag))) {
    ++it;
  }
  return it;
}

std::unique_ptr<ProbedMessage> ProbedMessages::take(const std::shared_ptr<mpi::CommInfo>& comm,
                                                    int source, int tag) {
  if (empty()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = find(comm.get(), source, tag);
  if (found == queue_.end()) return nullptr;
  std::unique_ptr<ProbedMessage> message = std::move(*found);
  queue_.erase(found);
  size_.fetch_sub(1, std::memory_order_release);
  return message;
}

/// Receives a message that MPI has matched.
int ProbedMessages::take_over(Job& job, const std::shared_ptr<mpi::CommInfo>& comm,
                              MPI_Message message, const MPI_Status& status,
                              std::unique_ptr<ProbedMessage>& taken) {
  const MPI_Count bytes = bytes_of(status);
  auto fresh = std::make_unique<ProbedMessage>();
  fresh->comm = comm;
  fresh->source = status.MPI_SOURCE;
  fresh->tag = status.MPI_TAG;
  fresh->wire_bytes = fresh->raw_bytes = static_cast<std::size_t>(bytes);
  fresh->data = job.pool.take(fresh->wire_bytes);
  if (!fresh->data) return comm->raise(MPI_ERR_NO_MEM);
  const int code =
      mpi::counted::Mrecv(fresh->data.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return code;
  wire::Header header;
  if (wire::read_header(fresh->data.data(), fresh->wire_bytes, job.nonce, header) ==
      wire::Parse::frame) {
    fresh->raw_bytes = header.raw_bytes();
  }
  taken = std::move(fresh);
  return MPI_SUCCESS;
}

int ProbedMessages::probe(Job& job, int source, int tag, MPI_Comm comm, int* flag,
                          MPI_Status* status) {
  if (const auto seen = mpi::glance_at_comm(comm);
      source == MPI_PROC_NULL || !seen || seen->no_frames) {
    return mpi::calls().Iprobe(source, tag, comm, flag, status);
  }
  std::unique_lock exclusive(posting_, std::defer_lock);
  if (job.threaded) exclusive.lock();
  if (!empty()) {
    const std::shared_ptr<mpi::CommInfo> info = mpi::comm_info(comm);
    std::lock_guard lock(mutex_);
    const auto found = find(info.get(), source, tag);
    if (found != queue_.end()) {
      (*found)->fill(status);
      *flag = 1;
      return MPI_SUCCESS;
    }
  }
  // What is no frame by its size stays where it is.
  MPI_Status own;
  MPI_Status& seen = status == MPI_STATUS_IGNORE ? own : *status;
  int found = no_answer;
  int code = mpi::calls().Iprobe(source, tag, comm, &found, &seen);
  if (found != no_answer) *flag = found;
  if (code != MPI_SUCCESS || found <= 0 || !is_frame_size(seen)) return code;
  const std::shared_ptr<mpi::CommInfo> info = mpi::comm_info(comm);
  if (!info) return MPI_ERR_COMM;
  // Older messages of that sender come along, so that none is overtaken.
  const int sender = seen.MPI_SOURCE;
  for (bool reached = false; !reached;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    code = mpi::calls().Improbe(sender, MPI_ANY_TAG, comm, flag, &message, &seen);
    if (code != MPI_SUCCESS || !*flag) return code;
    std::unique_ptr<ProbedMessage> taken;
    code = take_over(job, info, message, seen, taken);
    if (code != MPI_SUCCESS) return code;
    reached = matches(tag, MPI_ANY_TAG, taken->tag);
    if (reached) taken->fill(status);
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(taken));
    size_.fetch_add(1, std::memory_order_release);
  }
  return MPI_SUCCESS;
}

int ProbedMessages::match(Job& job, int source, int tag, MPI_Comm comm, int* flag,
                          MPI_Message* message, MPI_Status* status) {
  const std::shared_ptr<mpi::CommInfo> info = mpi::comm_info(comm);
  if (source == MPI_PROC_NULL || !info || info->no_frames) {
    return mpi::calls().Improbe(source, tag, comm, flag, message, status);
  }
  std::unique_lock exclusive(posting_);
  std::unique_ptr<ProbedMessage> matched = take(comm, source, tag);
  if (!matched) {
    MPI_Status own;
    MPI_Status& seen = status == MPI_STATUS_IGNORE ? own : *status;
    int found = no_answer;
    int code = mpi::calls().Improbe(source, tag, comm, &found, message, &seen);
    if (found != no_answer) *flag = found;
    if (code != MPI_SUCCESS || found <= 0 || !is_frame_size(seen)) return code;
    code = take_over(job, info, *message, seen, matched);
    if (code != MPI_SUCCESS) return code;
  }
  *flag = 1;
  matched->fill(status);
  std::lock_guard lock(mutex_);
  const std::uint32_t serial = next_handle_++ % message_handle_serials;
  *message = own_message(static_cast<int>(message_handle_base + serial));
  matched_[mpi::handle_bits(*message)] = std::move(matched);
  return MPI_SUCCESS;
}

std::unique_ptr<ProbedMessage> ProbedMessages::claim(MPI_Message message) {
  std::lock_guard lock(mutex_);
  const auto found = matched_.find(mpi::handle_bits(message));
  if (found == matched_.end()) return nullptr;
  std::unique_ptr<ProbedMessage> claimed = std::move(found->second);
  matched_.erase(found);
  return claimed;
}

}  // namespace mpress::engine
