// The program's buffer of a receive: how its data lies there, and whose memory that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/devices.hpp"
#include "core/layout.hpp"
#include "core/status.hpp"
#include "gpu/gpu.hpp"
#include "message/incoming.hpp"

namespace mpress::engine {

struct Messaging;

class ReceiveBuffer {
 public:
  explicit ReceiveBuffer(Messaging& messaging) : messaging_(messaging) {}

  /// Before locate(): the call has asked for default_work() of this device already.
  void know(int device, Devices::Behind behind) {
    known_of_ = device;
    known_ = std::move(behind);
  }

  /// `count` items at `data`. `layout` outlives this, or use() replaces it; null where the caller
  /// knows none. `is_ordered`: the caller has waited for what the program's default streams hold.
  void describe(void* data, std::int64_t count, const Layout* layout, bool is_ordered);
  void use(const Layout& layout) { layout_ = &layout; }

  /// Finds out whose memory it is, once.
  void locate();
  bool is_located() const { return is_located_; }
  /// May that wait until a frame has come?
  bool may_be_located_late() const;

  std::byte* data() const { return data_; }
  const Layout& layout() const { return *layout_; }
  std::size_t capacity() const { return capacity_; }  ///< bytes of data that fit

  // Once it is located:
  int device() const { return device_; }
  bool is_readable() const { return is_readable_; }  ///< by the CPU
  /// Does mpress unpack there what comes packed?
  bool is_unpacked_on_device() const;

  /// Is it a device's? For statistics, so an estimate where it is not located.
  bool is_on_device() const;

  /// For another message: its data come behind what the program's default streams hold now.
  void renew();

  /// `is_shared`: other receives have the buffer, too.
  Destination destination(bool is_shared);

  /// Lays packed data out, which is in memory of the host or of the buffer's device.
  Status lay_out(const std::byte* packed, std::size_t bytes) const;

 private:
  Messaging& messaging_;
  std::byte* data_ = nullptr;
  std::int64_t count_ = 0;
  const Layout* layout_ = nullptr;
  std::size_t capacity_ = 0;
  bool is_ordered_ = false;
  bool is_located_ = true;
  bool is_readable_ = true;
  int device_ = gpu::host;
  int known_of_ = gpu::host;  ///< see know()
  Devices::Behind known_;
  Devices::Behind behind_;  ///< what work of mpress's in the buffer comes behind
};

}  // namespace mpress::engine
