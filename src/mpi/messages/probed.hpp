// Messages that a probe took out of MPI's hands.
//
// Only its contents tell whether a message is a frame, and only the frame tells how large the
// program's message is. MPI lets nobody look into a message, and takes none back that it has
// matched; so a probe receives the message and keeps it here until a receive asks for it. (A
// synchronous send therefore completes at the probe: docs/semantics.md.) Messages whose size tells
// that they are no frames are left to MPI, unless one behind them is taken: what the queue holds
// of a sender is always older than what MPI holds.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "memory/buffer_pool.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/messages/mpi_receive.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

class Job;
class ReceiveRequest;

/// The flag of a probe that MPI refused: MPICH may return success, and set no flag, once a handler
/// of the program's was called.
inline constexpr int no_answer = -1;

/// A message that was probed.
struct ProbedMessage {
  std::shared_ptr<mpi::CommInfo> comm;  ///< not the handle, which may be recycled
  int source = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
  memory::Buffer data;
  std::size_t wire_bytes = 0;
  std::size_t raw_bytes = 0;  ///< what the program is told

  /// Describes the message as the program sent it.
  void fill(MPI_Status* status) const;

  /// Delivers it to a receive; `status` may be ignored. Returns an error code, raises nothing.
  int deliver(Job& job, trace::Op op, const ReceiveArguments& arguments, MPI_Status* status) const;

  /// Delivers it to the receive of `entry`, which is described, and makes `request` for that. The
  /// caller files `entry` where must_be_kept() says so: its data is still to come, or it failed.
  int deliver_later(ReceiveRequest& entry, MPI_Request* request) const;
};

/// Thread-safe. While a receive is being posted, posting() is held; a probe excludes it, so that
/// no message slips from a receive that found nothing here into this queue.
class ProbedMessages {
 public:
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }

  std::shared_lock<std::shared_mutex> posting() {
    return std::shared_lock<std::shared_mutex>(posting_);
  }

  /// Takes the oldest message that a receive with these arguments matches, or null.
  std::unique_ptr<ProbedMessage> take(MPI_Comm comm, int source, int tag) {
    return empty() ? nullptr : take(mpi::comm_info(comm), source, tag);
  }
  std::unique_ptr<ProbedMessage> take(const std::shared_ptr<mpi::CommInfo>& comm, int source,
                                      int tag);

  /// MPI_Iprobe: `flag` tells whether a message matches, and `status` describes it as sent. Where
  /// MPI refuses the arguments, `flag` stays as it is.
  int probe(Job& job, int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);

  /// MPI_Improbe: the same, and `message` is a handle for claim(), or MPI's own.
  int match(Job& job, int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
            MPI_Status* status);

  /// The message of a handle that match() made; null for MPI's own handles.
  std::unique_ptr<ProbedMessage> claim(MPI_Message message);

 private:
  using Queue = std::list<std::unique_ptr<ProbedMessage>>;
  Queue::iterator find(const mpi::CommInfo* comm, int source, int tag);
  int take_over(Job& job, const std::shared_ptr<mpi::CommInfo>& comm, MPI_Message message,
                const MPI_Status& status, std::unique_ptr<ProbedMessage>& taken);

  std::shared_mutex posting_;
  std::mutex mutex_;
  Queue queue_;
  std::atomic<std::size_t> size_{0};
  std::unordered_map<std::uintptr_t, std::unique_ptr<ProbedMessage>> matched_;
  std::uint32_t next_handle_ = 0;
};

}  // namespace mpress::engine
