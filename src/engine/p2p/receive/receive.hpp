// The receiving side of a message: where MPI puts it, and what makes it the program's data.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/asked.hpp"
#include "core/devices.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "message/incoming.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/type_info.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

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

/// A receive that may turn out to be a frame.
///
/// Gapless buffers receive in place; the frame, never larger than the raw message, is decoded
/// where it lies. Scattered types that are floats, or begin with floats, receive into staging,
/// since a frame must not be strewn over the program's layout; and so does memory of a device,
/// which MPI need not be able to reach. An MPI that can receives there, without gaps, and what may
/// be a frame by its size is brought to the host afterwards. Other scattered types are received
/// where they lie: they get no frames but the headers of messages that leave a device, and whose
/// data follows.
class Receive {
 public:
  /// Before anything else: the call has asked for default_work() of this device already.
  void know(int device, Devices::Behind behind) {
    known_of_ = device;
    known_ = std::move(behind);
  }

  /// Notes the arguments. False where they are wrong and MPI may say so.
  bool describe(Job& job, trace::Called op, const ReceiveArguments& arguments);

  /// Is it one into memory of a device that mpress unpacks what comes to?
  static bool may_need_unpacking(Job& job, const ReceiveArguments& arguments);

  /// The same, or can it bring a frame, as far as its size tells?
  static bool may_need_watching(Job& job, trace::Called op, const ReceiveArguments& arguments);

  /// Notes the arguments and prepares to receive from MPI. False where this receive cannot bring
  /// a frame, and MPI may have it unwatched; whoever has it otherwise describes it.
  bool watch(Job& job, trace::Called op, const ReceiveArguments& arguments);

  /// The same for a message that MPI has matched, and that is no frame.
  bool watch_matched(Job& job, trace::Called op, const ReceiveArguments& arguments);

  /// Takes over a message that MPI has received, with `status`, into a buffer without gaps, where
  /// nothing was prepared. False where it is no frame, as far as the CPU can look. `comm` replaces
  /// the communicator of the arguments.
  bool finds_frame(Job& job, trace::Called op, const ReceiveArguments& arguments,
                   std::shared_ptr<mpi::CommInfo> comm, const MPI_Status& status);

  /// The receive goes on after the call that it is described in: then the program may free its
  /// type.
  void outlive_call() {
    if (type_) type_ = mpi::lasting(std::move(type_));
  }

  // After watch(): receives that overlap.

  /// Does MPI receive straight into memory of the program's, and may it be a frame?
  bool is_in_place() const {
    return (place_ == Place::in_place || place_ == Place::remote) && !staging_;
  }
  std::size_t capacity() const { return capacity_; }
  /// Another receive under way is in place where this would be: receives into staging memory.
  void stage_aside(Job& job);
  /// The opposite: others bring data to the same place, at any time.
  void contest() { is_contested_ = true; }
  bool is_contested() const { return is_contested_; }
  /// Does a decoder, or MPI, put its data where the program has its buffer, now?
  bool fills_buffer() const { return incoming_ && incoming_->is_in_place(); }

  // After watch(), whatever it returned: what to give to MPI.
  void* buffer() const { return staging_ ? staging_.data() : arguments_.buffer; }
  MPI_Count count() const { return elements_ > 0 ? elements_ : arguments_.count; }
  MPI_Datatype type() const { return elements_ > 0 ? type_->packed_type() : arguments_.type; }
  ReceiveArguments posted() const { return {buffer(), count(), type(), arguments_.comm}; }

  /// Pacing lets a message travel from the moment its receive was posted; or, where the program
  /// had to wait for the sender, from the moment it came.
  void travels_when_posted() { travel_begin_ns_ = trace::now_ns(); }
  void travels_when_delivered() { travel_begin_ns_ = 0; }

  /// Notes that a blocking call has waited for the message, from `begin_ns` until now.
  void waited_since(std::uint64_t begin_ns) {
    const std::uint64_t end = trace::now_ns();
    waited_ns_ = end - begin_ns;
    trace::note_wait(op_, begin_ns, end);
  }

  /// After watch(): turns what MPI received into the program's data and mends the status.
  /// Returns an MPI error code and raises nothing. A second call for the same message only mends
  /// the status. Does nothing where watch() returned false.
  int deliver(Job& job, MPI_Status& status);

  /// After describe(): the same for a message that lies elsewhere, `bytes` bytes at `data`, sent
  /// by `status.MPI_SOURCE`.
  int accept(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status);

  // A message in chunks is not all there when MPI has received its header.

  /// After watch(): may such a message come?
  bool may_come_in_chunks(const Job& job) const;

  /// For such a receive: takes what has come, without waiting; `request` is MPI's. True where the
  /// message is all there, and deliver() will not wait.
  bool is_all_there(Job& job, MPI_Request request);

  /// Begins to collect the chunks that the message announces that MPI has received with `status`.
  /// False where it announces none that the program can have: deliver() knows what to do.
  bool collects(Job& job, const MPI_Status& status);

  /// Begins to collect the chunks that the message at `data` announces, sent by `source`. False
  /// where it announces none that the program can have: accept() knows what to do.
  bool collect(Job& job, const std::byte* data, std::size_t bytes, int source);

  bool is_collecting() const { return incoming_ != nullptr; }

  /// Must somebody take what has come for the sender to get on?
  bool needs_host() const { return incoming_ && incoming_->pipeline().needs_host(); }

  /// Once MPI has received the message, or its header: is nothing of it on its way any more?
  bool has_come() const { return !incoming_ || incoming_->pipeline().has_come(); }

  /// After that: takes what has come, without waiting. True where deliver() will not wait.
  bool collected() { return incoming_->advance(); }

  /// The same as accept() for a receive that is over with it: deliver() repeats what came of it.
  void settle(Job& job, const std::byte* data, std::size_t bytes, MPI_Status& status);

  /// The receive is over with an error, which MPI may have raised: deliver() repeats it.
  void fail(int code, bool is_raised);

  /// After deliver() gave `code`: is that still to be raised? No, once, where MPI has done so.
  bool must_raise(int code) {
    const bool is_raised = delivery_ == Delivery::raised;
    if (is_raised) delivery_ = Delivery::done;
    return code != MPI_SUCCESS && !is_raised;
  }

  /// Is the message the program's, or never will be?
  bool is_delivered() const { return delivery_ != Delivery::due; }

  /// Has it been delivered with an error?
  bool failed() const { return is_delivered() && delivered_code_ != MPI_SUCCESS; }

  /// A persistent receive waits for its next message.
  void renew(const Job& job) {
    look_behind(job);
    delivery_ = Delivery::due;
    delivered_bytes_ = 0;
    posted_ns_ = trace::timeline.now();
    if (arguments_.outcome) *arguments_.outcome = {};
  }

  const std::shared_ptr<mpi::CommInfo>& comm() const { return comm_; }

  /// What comes encoded is kept so in `opaque`, too, or there alone; what comes as it is leaves
  /// that empty.
  void keep_in(std::shared_ptr<ReceivedBlock> opaque, bool alone) {
    kept_in_ = std::move(opaque);
    is_kept_alone_ = alone;
  }

 private:
  /// Where MPI puts the message.
  enum class Place : std::uint8_t {
    unwatched,  ///< wherever the program says
    in_place,   ///< in the program's buffer, which has no gaps
    scattered,  ///< in the program's layout, which has
    remote,     ///< where the CPU cannot look, or perhaps not: in the program's buffer, or in such
                ///< memory beside it
    staged,     ///< beside it, in host memory
    aside,      ///< beside it, as it overlaps another receive's
  };
  enum class Delivery : std::uint8_t { due, done, raised /*by MPI: what went wrong*/ };

  /// Does it lie beside the program's buffer, which other receives bring data to?
  bool is_aside() const {
    return place_ == Place::aside || (place_ == Place::remote && staging_ && type_->contiguous);
  }
  struct Arrived;
  using Beginning = std::array<std::byte, wire::min_frame_bytes>;
  const std::byte* beginning(Job& job, Beginning& room) const;
  int copy_to_host(Job& job, std::byte* to, std::size_t bytes) const;
  int settle_remote(Job& job, std::size_t bytes, MPI_Status& status);
  void describe_data(trace::Called op, const ReceiveArguments& arguments);
  bool may_stay_unseen(Job& job) const;
  void find_place(Job& job);
  void see_place(Job& job);
  void look_behind(const Job& job);
  bool is_on_device(const Job& job) const;
  bool stage(Job& job, Place place);
  bool stage_packed(Job& job);
  void receive_packed();
  int deliver_raw(Job& job, const Arrived& arrived);
  int deliver_frame(Job& job, const Arrived& arrived, int source);
  Destination destination(const Job& job);
  int conclude(Job& job);
  trace::Key key(const Job& job, int source, Codec codec, trace::Way way) const;
  void note_message(int source, Codec codec, std::size_t wire_bytes, std::uint32_t message) const;
  int scatter(Job& job, const std::byte* packed, std::size_t bytes);
  void let_others_leave(Job& job) const;
  bool rescue(Job& job, const MPI_Status& status);

  ReceiveArguments arguments_;
  std::shared_ptr<mpi::CommInfo> comm_;
  bool knows_comm_ = true;  ///< comm_ is the message's
  std::shared_ptr<mpi::TypeInfo> type_;
  std::size_t capacity_ = 0;  ///< bytes of data that fit
  bool is_seen_ = true;       ///< what follows is known
  int device_ = gpu::host;    ///< whose memory the buffer is
  Devices::Behind behind_;    ///< what work of mpress's in the buffer comes behind
  int known_of_ = gpu::host;  ///< see know()
  Devices::Behind known_;
  bool is_readable_ = true;  ///< by the CPU
  memory::Buffer staging_;
  std::unique_ptr<Incoming> incoming_;  ///< set while data is collected
  std::shared_ptr<ReceivedBlock> kept_in_;
  bool is_kept_alone_ = false;
  Place place_ = Place::unwatched;
  std::atomic<bool> is_contested_{false};
  /// Where not 0: float runs are received element by element, staged structures byte by byte. A
  /// frame is a whole number of those, but not of larger items.
  MPI_Count elements_ = 0;
  std::uint64_t travel_begin_ns_ = 0;  ///< 0: when delivered
  std::uint64_t waited_ns_ = 0;
  std::uint64_t posted_ns_ = 0;  ///< when, for the timeline
  trace::Called op_ = trace::Op::recv;
  Delivery delivery_ = Delivery::due;
  int delivered_code_ = MPI_SUCCESS;
  std::size_t delivered_bytes_ = 0;
};

}  // namespace mpress::engine
