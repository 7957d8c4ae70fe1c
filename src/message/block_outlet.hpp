// One way out for an opaque block: the readers that one link reaches.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

struct Messaging;

class BlockOutlet {
 public:
  /// `transfer` has slots for all chunks; it is the outlet's from now on. By MPI, `is_zero_copy`:
  /// none has memory, and the block's is sent from. `is_driven`: see Driven.
  BlockOutlet(Messaging& messaging, link::Link& link, const link::Transfer& transfer,
              std::shared_ptr<OpaqueBlock> opaque, bool is_zero_copy, bool is_driven)
      : messaging_(messaging),
        link_(link),
        transfer_(transfer),
        opaque_(std::move(opaque)),
        is_zero_copy_(is_zero_copy),
        is_driven_(is_driven) {}
  BlockOutlet(const BlockOutlet&) = delete;
  BlockOutlet& operator=(const BlockOutlet&) = delete;
  ~BlockOutlet();

  /// Publishes what the block has, as devices have copied it; readers may have heard of the
  /// transfer, or will. Never waits. True once all is published, or will not come: readers learn of
  /// that, too.
  bool advance();

  /// Must somebody call advance() for the readers to get all?
  bool needs_host() const { return !is_over_ && !is_given(); }

  Status status() const { return status_; }  ///< of this outlet's own

 private:
  /// Has a device been given all of the work, so that it publishes what is left?
  bool is_given() const {
    return link_.devices_publish() && copied_ == opaque_->cut().chunks() && status_.is_ok();
  }
  /// To memory of the host a few at a time, where nothing is lost by that.
  bool may_copy() const;
  bool copy_next();
  void publish_copied();
  void fail();

  Messaging& messaging_;
  link::Link& link_;
  const link::Transfer transfer_;
  const std::shared_ptr<OpaqueBlock> opaque_;
  const bool is_zero_copy_;
  const bool is_driven_;
  std::uint64_t copied_ = 0;     ///< chunks whose copies were given, or that went from there
  std::uint64_t published_ = 0;  ///< of those, or known to have been
  std::deque<gpu::Event> copies_;
  bool is_over_ = false;
  Status status_;
  QueueLease queue_;
};

}  // namespace mpress::engine
