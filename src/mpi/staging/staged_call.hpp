// One call of MPI's whose buffers may lie in device memory.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collectives/operands.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/staging/bounce_buffer.hpp"

namespace mpress::engine {

class Job;

/// What has to live until MPI has completed the call: bounce buffers for its own, and arguments
/// that were written anew. Errors are returned as MPI's codes, and raised on the call's
/// communicator by those functions that say so.
class StagedCall {
 public:
  /// Where a buffer needs a bounce buffer: makes one for each on a device. Raises.
  int open(Job& job, const Operands& operands);

  /// Makes one for each buffer on a device: not all MPIs that take memory of devices do so in calls
  /// that do not block. Raises.
  int open_all(Job& job, const Operands& operands);

  /// The same and fetch(), for a call that raises later what goes wrong; it has no comm().
  int prepare(Job& job, const Operands& operands);

  /// Before MPI gets the call, or starts it: brings what it reads. Raises.
  int fetch(Job& job);

  /// The same of a call that MPI starts again: waits first for what the program's default streams
  /// hold.
  int fetch_behind_defaults(Job& job);

  /// When MPI has completed it without an error: what it wrote becomes the program's. Does so once
  /// and repeats the result until the next fetch(); does not raise.
  int deliver(Job& job);

  /// The same for a call that blocked. Raises.
  int conclude(Job& job) { return raised(deliver(job)); }

  /// Has the call neither bounce buffers nor arguments of its own?
  bool empty() const { return !send_ && !receive_ && arrays_.empty(); }

  /// The address to give to MPI, for either buffer's parameter, and other arguments as they are.
  const void* replaced(const void* buffer) const { return send_ ? send_.address() : buffer; }
  void* replaced(void* buffer) const { return receive_ ? receive_.address() : buffer; }
  template <typename T>
  T replaced(T argument) const {
    return argument;
  }

  /// Room for an array of counts or displacements that MPI gets.
  int* new_array(std::size_t size) {
    return arrays_.emplace_back(std::make_unique<int[]>(size)).get();
  }

  const std::shared_ptr<mpi::CommInfo>& comm() const { return comm_; }

 private:
  int make(Job& job, const Operands& operands, bool send, bool receive);
  int bring(Job& job);
  int raised(int code) const { return code == MPI_SUCCESS ? code : comm_->raise(code); }

  std::shared_ptr<mpi::CommInfo> comm_;
  BounceBuffer send_;
  BounceBuffer receive_;
  std::vector<std::unique_ptr<int[]>> arrays_;
  bool delivered_ = false;
  int delivered_code_ = MPI_SUCCESS;
};

/// Keeps a call that MPI has begun as `request`, until that completes; where it has, delivers at
/// once. Raises.
int complete_later(Job& job, std::unique_ptr<StagedCall> call, MPI_Request request);

/// Keeps a call that MPI has made persistent.
void keep_persistent(Job& job, std::unique_ptr<StagedCall> call, MPI_Request request);

}  // namespace mpress::engine
