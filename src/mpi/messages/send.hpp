// The sending side of a message: raw, a frame in its place, or a header whose data follows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/asked.hpp"
#include "core/devices.hpp"
#include "memory/buffer_pool.hpp"
#include "message/message.hpp"
#include "message/send.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/requests/finished_request.hpp"
#include "mpi/requests/request.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"

namespace mpress::mpi {
struct TypeInfo;
}

namespace mpress::engine {

class Job;

/// Arguments of a sending call.
struct SendArguments {
  const void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int destination = MPI_PROC_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  std::optional<Spec> spec = {};  ///< asked for by the call itself
  Outcome* outcome = nullptr;     ///< where to add what becomes of it; outlives the call
};

/// A message as the layers below see it. All arguments outlive it.
Message message_of(const SendCall& call, const SendArguments& arguments, const mpi::TypeInfo& type,
                   const mpi::CommInfo& comm, int peer, std::size_t bytes, const Location& place);

/// How MPI gets what a message became: items of a type, of `unit` bytes each.
struct Items {
  MPI_Datatype type;
  std::size_t unit;
};

/// What to give to MPI. The frame must live until MPI is done with `arguments.buffer`; the rest
/// ends with the sending call, which is what the timeline shows of the message.
struct Outgoing {
  SendArguments arguments;
  memory::Buffer frame;                 ///< what they name, where that is not the program's
  std::unique_ptr<Send> data;           ///< set: MPI gets its beginning, by a SendOperation
  Items items{};                        ///< of that
  std::shared_ptr<mpi::CommInfo> comm;  ///< where there is data: the message's
  int error = MPI_SUCCESS;              ///< has been raised
  trace::Op op = trace::Op::send;       ///< the sending call's
  bool buffer_stays = false;            ///< as SendCall says
  trace::Row* row = nullptr;            ///< the message's line in the statistics; null: not counted
  trace::Span span;                     ///< the sending call
  int asked_of = gpu::host;             ///< the device that default_work() was asked of
  Devices::Behind behind = nullptr;     ///< and what it told

  /// Does MPI get the message as the program has it?
  bool is_raw() const { return !frame && !data; }
};

/// The elements of a message in the order of its type map, without gaps; empty where packing
/// failed. `bytes` is the size of the message's data.
memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes);

/// Takes what was told of messages that were timed. Where the message is counted, now, if MPI may
/// have it as it is since one like it went so; else null. prepare_send() begins with this; a caller
/// that does so itself saves the making of what that returns.
trace::Row* count_as_before(Job& job, const SendCall& call, const SendArguments& arguments);

/// Decides about a message, encodes it where that pays, and counts it. Where `error` comes back
/// set, it has been raised already.
Outgoing prepare_send(Job& job, const SendCall& call, const SendArguments& arguments);

/// A non-blocking send.
using ImmediateSend = int (*)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm,
                              MPI_Request*);

/// A message whose beginnings go to MPI, one for each reader, and whose data travels apart. It is
/// over when MPI is done with them, and the program's buffer is free.
class SendOperation final : public Request {
 public:
  /// `comm`: whose handler gets an error of the data; null: the caller sees to it.
  SendOperation(Job& job, std::unique_ptr<Send> send, std::shared_ptr<mpi::CommInfo> comm)
      : job_(job),
        send_(std::move(send)),
        comm_(std::move(comm)),
        is_offered_(send_->is_offered()) {}

  /// Hands the beginnings to MPI; `readers` are ranks of `comm`. Returns MPI's first error code;
  /// what it raised is raised.
  int start(ImmediateSend send, const Items& items, std::span<const int> readers, MPI_Comm comm,
            int tag);
  int start(ImmediateSend send, const Outgoing& of, int tag) {
    return start(send, of.items, {&of.arguments.destination, 1}, of.arguments.comm, tag);
  }

  /// After start(): whether MPI has a header. MPICH's call may return success without, once a
  /// handler of the program's was called; then there is nothing to be done.
  bool is_announced() const { return !headers_.empty(); }

  /// After that: gives the program a request that completes with this operation.
  void open_request(MPI_Request* request);

  bool advance() override;
  bool needs_host() const override { return !is_sent_ && send_->needs_host(); }
  bool may_be_late(const Job&) const override { return true; }
  bool only_mpress_completes() const override { return true; }
  void await(bool alone) override { is_awaited_.store(alone, std::memory_order_relaxed); }
  bool is_offered() const override { return is_offered_.load(std::memory_order_relaxed); }
  Ending finish(Job& job, MPI_Status& status) override;
  int cancel(MPI_Request* request) override;
  Ending ending() const;
  bool must_end() const override { return !is_sent_; }
  void abandon() override;

  /// For a call that blocks, or that MPI itself will tell of the header's end: lets only the data
  /// proceed. True once the program's buffer is free.
  bool advance_data();

  /// Lets MPI proceed with the headers; true once they are sent. While data waits, too: its reader
  /// may wait for the header, which MPI need not have sent when the send began.
  bool advance_headers();

  /// Is the program's buffer free?
  bool is_sent() const { return is_sent_; }

  // Of a message to one reader, for a caller who completes the header in place of this operation.
  MPI_Request release_request() {
    return headers_.empty() ? MPI_REQUEST_NULL : std::exchange(headers_.front(), MPI_REQUEST_NULL);
  }
  memory::Buffer release_frame() { return send_->release_header(); }
  std::uint64_t operation() const { return send_->operation(); }

  /// Once the data is sent: raises what went wrong with it, or with the header, once. Returns the
  /// error code.
  int raise() const;

 private:
  void note_header(int code, bool is_raised);

  Job& job_;
  const std::unique_ptr<Send> send_;
  const std::shared_ptr<mpi::CommInfo> comm_;
  std::vector<MPI_Request> headers_;  ///< of MPI's, that are not over
  int header_code_ = MPI_SUCCESS;
  bool is_header_raised_ = false;  ///< by MPI: what went wrong
  bool is_sent_ = false;
  std::atomic<bool> is_awaited_{false};
  std::atomic<bool> is_offered_;  ///< asked while another thread lets it proceed
  OpenRequest request_;
  bool has_request_ = false;
};

/// A send whose frame MPI reads: the frame lives until then.
class FrameSend final : public Request {
 public:
  explicit FrameSend(memory::Buffer frame, std::uint64_t message = no_message)
      : frame_(std::move(frame)), message_(message) {}
  Ending finish(Job& job, MPI_Status& status) override;
  Ending look(Job&, MPI_Status&) override { return {}; }

  static constexpr std::uint64_t no_message = UINT64_MAX;

 private:
  memory::Buffer frame_;
  std::uint64_t message_;  ///< whose data the frame announces
};

/// A blocking send.
using BlockingSend = int (*)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);

/// Sends `outgoing`, which has no data, as a blocking call does.
int send_now(Job& job, const Outgoing& outgoing, BlockingSend call, ImmediateSend start, int tag);

/// Sends `outgoing`, which has data, as a blocking call does: returns when the buffer is free and
/// MPI is done with the header. Raises; counts the time that it waits.
int send_data(Job& job, Outgoing outgoing, ImmediateSend send, int tag);

/// What has to live until a send is over: neither, where MPI has all of it.
struct Started {
  std::shared_ptr<SendOperation> operation;
  std::shared_ptr<FrameSend> frame;
};

/// Starts what was prepared. `request` is then MPI's, of all that is left to do, or
/// MPI_REQUEST_NULL where `started.operation` is. Raises; after an error of the data there is a
/// request all the same.
int start_send(Job& job, Outgoing outgoing, ImmediateSend send, int tag, MPI_Request* request,
               Started* started);

/// MPI_Isend of what was prepared. Raises.
int send_later(Job& job, Outgoing outgoing, ImmediateSend send, int tag, MPI_Request* request);

}  // namespace mpress::engine
