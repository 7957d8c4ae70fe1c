#include "engine/coll/direct.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/job.hpp"
#include "engine/p2p/exchange.hpp"
#include "engine/p2p/send.hpp"
#include "engine/request/completion.hpp"
#include "mpi/counted.hpp"
#include "mpi/self_comm.hpp"
#include "mpi/type_info.hpp"

namespace mpress::engine {
namespace {

/// At most so many messages each way are under way at once.
constexpr int window = 32;

/// A block in a buffer of this process.
struct Part {
  void* data = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::size_t bytes = 0;
};

/// Block `i` of a buffer's; without bytes where there is none. Its type counts only where it has
/// items.
Part part_of(const Operand& operand, const Blocks& blocks, int i) {
  if (i >= blocks.number()) return {};
  const Block block = blocks[i];
  if (block.count <= 0) return {};
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(block.type);
  if (!type) return {};
  const auto at =
      reinterpret_cast<std::uintptr_t>(operand.buffer) + static_cast<std::uintptr_t>(block.offset);
  return {reinterpret_cast<void*>(at), block.count, block.type,
          type->size * static_cast<std::size_t>(block.count)};
}

/// The call as this rank takes part in it.
class Exchange {
 public:
  Exchange(Job& job, const Collective& call, const Context& context, const Operands& operands)
      : job_(job), call_(call), context_(context), operands_(operands) {}

  int run();

 private:
  Part sent_to(int rank) const;
  Part got_from(int rank) const;
  int copy_own();
  int copy_by_device(const Part& from, const Part& to);
  int exchange(int first, int last);
  int post(int from, const Part& part);
  int send(int to, const Part& part);
  int tell_failure(int to);
  int complete();

  Job& job_;
  const Collective& call_;
  const Context& context_;
  const Operands& operands_;
  std::vector<MPI_Request> requests_;
  std::size_t receives_ = 0;  ///< the first of those
};

Part Exchange::sent_to(int rank) const {
  const Operand& send = operands_.send;
  const bool has_one = call_.family == Family::gather;  // for the root
  if (has_one && rank != operands_.root) return {};
  return part_of(send, send.reads, has_one ? 0 : rank);
}

Part Exchange::got_from(int rank) const {
  const Operand& receive = operands_.receive;
  const bool has_one = call_.family == Family::scatter;  // from the root
  if (has_one && rank != operands_.root) return {};
  return part_of(receive, receive.writes, has_one ? 0 : rank);
}

int Exchange::run() {
  const int size = context_.size();
  int code = copy_own();
  for (int first = 1; first < size; first += window) {
    const int one = exchange(first, std::min(first + window, size));
    if (code == MPI_SUCCESS) code = one;
  }
  return code;
}

/// What a rank has for itself never leaves it.
int Exchange::copy_own() {
  const int rank = context_.rank();
  const Part from = sent_to(rank);
  const Part to = got_from(rank);
  if (from.bytes == 0 || to.bytes == 0) return MPI_SUCCESS;  // in place, or nothing
  const std::shared_ptr<mpi::TypeInfo> from_type = mpi::type_info(from.type);
  const std::shared_ptr<mpi::TypeInfo> to_type = mpi::type_info(to.type);
  const int from_device = device_of(job_, from.data, *from_type);
  const int to_device = device_of(job_, to.data, *to_type);
  if (from_device == gpu::host && to_device == gpu::host) {
    return mpi::counted::Sendrecv(from.data, {from.count, from.type, 0, 0}, to.data,
                                  {to.count, to.type, 0, 0}, mpi::self_comm(), MPI_STATUS_IGNORE);
  }
  const bool is_whole = from_type->contiguous && to_type->contiguous && from.bytes <= to.bytes;
  const bool is_one =
      from_device == to_device || from_device == gpu::host || to_device == gpu::host;
  if (is_whole && is_one) {
    const int device = from_device == gpu::host ? to_device : from_device;
    const QueueLease queue = job_.devices.queue(device);
    if (!queue) return refused(job_, device);
    return job_.devices.wait(job_, *queue, queue->copy(to.data, from.data, from.bytes));
  }
  requests_.clear();
  int code = post(rank, to);
  receives_ = requests_.size();
  const int sent = send(rank, from);
  if (code == MPI_SUCCESS) code = sent;
  const int done = complete();
  return code == MPI_SUCCESS ? done : code;
}

/// With the ranks that are `first` to `last` - 1 away, each way, all at once: so no rank is sent to
/// by all others at a time, and whoever is late makes only these wait.
int Exchange::exchange(int first, int last) {
  const int size = context_.size();
  const int rank = context_.rank();
  requests_.clear();
  int code = MPI_SUCCESS;
  for (int away = first; away < last; ++away) {
    const int from = (rank - away + size) % size;
    const Part part = got_from(from);
    const int one = part.bytes > 0 ? post(from, part) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = one;
  }
  receives_ = requests_.size();
  for (int away = first; away < last; ++away) {
    const int to = (rank + away) % size;
    const Part part = sent_to(to);
    const int one = part.bytes > 0 ? send(to, part) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = one;
  }
  const int done = complete();
  return code == MPI_SUCCESS ? done : code;
}

int Exchange::post(int from, const Part& part) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      receive_later(job_, call_.op, {part.data, part.count, part.type, context_.comm()},
                    {from, context_.block_tag()}, &request);
  if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  return code;
}

int Exchange::send(int to, const Part& part) {
  const SendArguments arguments{part.data, part.count, part.type, to, context_.comm()};
  Outgoing out = prepare_send(job_, {call_.op, call_.family, true}, arguments);
  if (out.error != MPI_SUCCESS) {
    const int code = out.error;
    const int told = tell_failure(to);
    return told == MPI_SUCCESS ? code : told;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      send_later(job_, std::move(out), mpi::counted::Isend, context_.block_tag(), &request);
  if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  return code;
}

/// A block that cannot be sent comes empty, so that its receiver does not wait for ever.
int Exchange::tell_failure(int to) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = mpi::counted::Isend(nullptr, 0, MPI_BYTE, to, context_.block_tag(),
                                       context_.comm(), &request);
  if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  return code;
}

/// Waits for all requests, also where some fail: none is left when the call is over.
int Exchange::complete() {
  if (requests_.empty()) return MPI_SUCCESS;
  std::vector<MPI_Status> statuses(requests_.size());
  int code = waitall(job_, static_cast<int>(requests_.size()), requests_.data(), statuses.data(),
                     call_.op);
  const bool has_errors = code == MPI_ERR_IN_STATUS;
  if (has_errors) code = MPI_SUCCESS;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int one = has_errors ? statuses[i].MPI_ERROR : MPI_SUCCESS;
    if (requests_[i] != MPI_REQUEST_NULL) one = wait(job_, &requests_[i], &statuses[i]);
    // Its sender could not send it.
    if (one == MPI_SUCCESS && code == MPI_SUCCESS && i < receives_ &&
        mpi::counted::bytes_of(statuses[i]) == 0) {
      one = job_.device_code;
    }
    if (code == MPI_SUCCESS) code = one;
  }
  return code;
}

}  // namespace

std::optional<int> serve_directly(Job& job, const Collective& call, const Operands& operands) {
  const std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(operands.comm);
  if (!comm) return std::nullopt;
  const Route route = route_of(job, call, operands, comm);
  if (route.has_failed) return comm->raise(MPI_ERR_OTHER);
  if (!route.context) return std::nullopt;
  if (const mpi::Hints hints = comm->hints.get(); !hints.empty()) {
    if (const auto blocks = mpi::comm_info(route.context->comm())) blocks->hints.update(hints);
  }
  const int code = Exchange(job, call, *route.context, operands).run();
  return code == MPI_SUCCESS ? code : comm->raise(code);
}

}  // namespace mpress::engine
