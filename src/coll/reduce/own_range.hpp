// The range of the contribution of this rank to a reduction, found where it lies.
#pragma once

#include <cstddef>
#include <optional>

#include "codec/range.hpp"
#include "core/devices.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

struct Messaging;

/// One thread at a time.
class OwnRange {
 public:
  explicit OwnRange(Messaging& messaging) : messaging_(messaging) {}

  /// Looks for the range of `count` elements, which stay, on `device` or on the host: of the host's
  /// it is known at once. Where none is known.
  void begin(ElementType type, const std::byte* elements, std::size_t count, int device);

  /// Never waits. True once it is known.
  bool advance();

  /// As it was found otherwise.
  void set(const codec::Range& range) { range_ = range; }
  /// Of nothing, by a member that has failed.
  void set_empty() { set({}); }
  void forget() {
    range_.reset();
    status_ = Status::ok;
  }

  bool is_known() const { return range_.has_value(); }
  /// Of nothing, while it is not known.
  codec::Range value() const { return range_.value_or(codec::Range{}); }

  /// The first failure, of begin() and what came of it.
  Status status() const { return status_; }

 private:
  void fail(Status status);

  Messaging& messaging_;
  int device_ = gpu::host;
  QueueLease queue_;  ///< while the device looks
  gpu::Event event_ = 0;
  memory::Buffer extent_;  ///< what it tells
  std::optional<codec::Range> range_;
  Status status_;
};

}  // namespace mpress::engine
