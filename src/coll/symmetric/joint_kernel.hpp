// The one kernel that a call on data of a host's devices gives each of them
// (coll/symmetric/joint_memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coll/symmetric/joint_memory.hpp"
#include "core/devices.hpp"
#include "core/stream_order.hpp"
#include "gpu/queue.hpp"

namespace mpress::engine {

struct Messaging;

/// Given again while it leaves something undone. Each time give(queue, number, again) gives it, and
/// returns its event; `number` is the call's.
///
/// One that has a place behind streams begins behind what those hold. If the stream is one that the
/// program names, and all members say so it is left
/// to its device: it waits for the others without end, as its host may not look for long, and the
/// stream waits for it. A process leaves one at a time to its devices. All members leave a call's,
/// or none, so that no two calls' kernels wait for each other's.
class JointKernel {
 public:
  JointKernel(Messaging& messaging, JointMemory& memory) : messaging_(messaging), memory_(memory) {}
  JointKernel(const JointKernel&) = delete;
  JointKernel& operator=(const JointKernel&) = delete;
  /// Also of one that was offered, and did not begin.
  ~JointKernel() {
    leave_to_others();
    if (is_under_way()) end();
  }

  bool is_under_way() const { return number_ != 0; }

  /// Before it is offered: its place behind streams, which outlives begin(); or null.
  void follow(StreamOrder* order) { order_ = order; }

  /// Not where that stream is another device's.
  bool may_run_on(int device) const { return !order_ || order_->suits(device); }

  /// Part of the first word that this member tells: JointMemory::left_bit, if the kernel may be
  /// left to the device as far as this process knows.
  std::uint64_t offer();

  /// On `device`. `offers`: those of all, `words` words each.
  template <class Give>
  void begin(int device, std::span<const std::uint64_t> offers, std::size_t words,
             const Give& give) {
    number_ = memory_.next_call();
    memory_.set_busy(true);
    settle(offers, words);
    queue_ = take_queue(device);
    give_once(give, false);
    const bool is_given = queue_ && queue_->query(event_) != gpu::State::failed;
    if (is_endless_ && is_given) is_in_stream_ = order_->precede(*queue_);
  }

  bool is_endless() const { return is_endless_; }

  /// Does the stream wait for it? Then no host need do so.
  bool is_in_stream() const { return is_in_stream_; }

  /// Of one under way. True once it is over; `status` as for JointMemory::look().
  template <class Give>
  bool advance(const Give& give, Status& status) {
    const JointMemory::End found = memory_.look(queue_, event_, memory_.undone(), status);
    if (found == JointMemory::End::pending && is_endless_) stop_if_lost();
    if (found == JointMemory::End::undone) give_once(give, true);
    if (found != JointMemory::End::over) return false;
    end();
    return true;
  }

 private:
  void settle(std::span<const std::uint64_t> offers, std::size_t words);
  void leave_to_others();
  QueueLease take_queue(int device);
  void stop_if_lost();
  void end();

  template <class Give>
  void give_once(const Give& give, bool again) {
    if (!queue_) return;
    *memory_.undone() = 0;
    event_ = give(queue_->collectives(), number_, again);
  }

  Messaging& messaging_;
  JointMemory& memory_;
  std::uint32_t number_ = 0;  ///< 0: it is not under way
  StreamOrder* order_ = nullptr;
  bool is_endless_ = false;  ///< or may be, once all offers have come
  bool is_in_stream_ = false;
  std::uint64_t looked_ns_ = 0;  ///< whether a member is lost
  gpu::Event event_ = 0;
  QueueLease queue_;
};

}  // namespace mpress::engine
