// A receive as MPI has it: its arguments, statuses and error codes. All else is Receive's.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "core/asked.hpp"
#include "message/receive.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/type_info.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;

/// Arguments of a receiving call.
struct ReceiveArguments {
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  Outcome* outcome = nullptr;  ///< where to add what becomes of it; outlives the receive
};

/// Its functions return error codes of MPI's and raise nothing.
class MpiReceive {
 public:
  explicit MpiReceive(Job& job);

  const Receive& core() const { return core_; }
  Receive& core() { return core_; }

  /// Notes the arguments. False where they are wrong and MPI may say so.
  bool describe(trace::Called op, const ReceiveArguments& arguments);

  /// Is it one into memory of a device that mpress unpacks messages to?
  static bool may_need_unpacking(Job& job, const ReceiveArguments& arguments);

  /// May it need unpacking, or can a frame come, as far as its size shows? `encodes_anyway`: its
  /// sender may encode although no rank gains by that.
  static bool may_need_watching(Job& job, const ReceiveArguments& arguments,
                                bool encodes_anyway = false);

  /// Notes the arguments and prepares to receive from MPI. False where no frame can come, and MPI
  /// may have it unwatched; whoever has it otherwise describes it.
  bool watch(trace::Called op, const ReceiveArguments& arguments, bool encodes_anyway = false);

  /// The same for a message that MPI has matched, and that is no frame.
  bool watch_matched(trace::Called op, const ReceiveArguments& arguments);

  /// Takes over a message that MPI has received, with `status`, into a buffer without gaps, where
  /// nothing was prepared. False where it is no frame, as far as the CPU can look. `comm` replaces
  /// the communicator of the arguments.
  bool finds_frame(trace::Called op, const ReceiveArguments& arguments,
                   std::shared_ptr<mpi::CommInfo> comm, const MPI_Status& status);

  /// The receive goes on after the call that it is described in: then the program may free its
  /// type.
  void outlive_call();

  /// After watch(), whatever it returned: what to give to MPI.
  ReceiveArguments posted() const;

  /// Another receive under way is in place where this would be: receives into staging.
  void stage_aside();

  /// For a receive whose data may follow a header: takes what has come, without waiting; `request`
  /// is MPI's. True where the message is all there, and deliver() will not wait.
  bool is_all_there(MPI_Request request);

  /// Begins to collect the data that the message announces that MPI has received with `status`.
  /// False where it announces none that the program can have: deliver() knows what to do.
  bool collects(const MPI_Status& status);

  /// The same of a message that lies at `data`, sent by `source`: else settle() knows what to do.
  bool collects(const std::byte* data, std::size_t bytes, int source);

  /// After watch(): turns what MPI received into the program's data and mends the status. A second
  /// call for the same message only mends the status. Does nothing where watch() returned false.
  int deliver(MPI_Status& status);

  /// After describe(): the same for a message that lies elsewhere, `bytes` bytes at `data`, sent
  /// by `status.MPI_SOURCE`. deliver() repeats what came of it.
  int settle(const std::byte* data, std::size_t bytes, MPI_Status& status);

  /// The receive is over with an error, which MPI may have raised: deliver() repeats it.
  void fail(int code, bool is_raised);

  /// Has it been delivered with an error?
  bool failed() const { return core_.result() && code() != MPI_SUCCESS; }

  /// After deliver() gave `code`: is that still to be raised? No, once, where MPI has done so.
  bool must_raise(int code) { return code != MPI_SUCCESS && !std::exchange(is_raised_, false); }

  /// A persistent receive waits for its next message.
  void renew();

  const std::shared_ptr<mpi::CommInfo>& comm() const { return comm_; }

 private:
  void describe_data(trace::Called op, const ReceiveArguments& arguments);
  void require_memory() const;
  int world_rank(int source) const;
  int code() const;
  int mend(MPI_Status& status) const;

  Job& job_;
  Receive core_;
  ReceiveArguments arguments_;
  std::shared_ptr<mpi::CommInfo> comm_;
  std::shared_ptr<mpi::TypeInfo> type_;
  bool knows_comm_ = true;  ///< comm_ is the message's
  int failed_code_ = MPI_SUCCESS;
  bool is_raised_ = false;  ///< by MPI: that error
};

}  // namespace mpress::engine
