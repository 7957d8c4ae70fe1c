// Data with gaps in memory of devices: where it lies, and how it gets to other memory, packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/devices.hpp"
#include "core/layout.hpp"
#include "core/status.hpp"

namespace mpress::engine {

struct Runtime;

Location locate(Runtime& runtime, const void* buffer, const Layout& layout);

inline int device_of(Runtime& runtime, const void* buffer, const Layout& layout) {
  return locate(runtime, buffer, layout).device;
}

/// A copy that a queue makes.
struct CopyUnderWay {
  QueueLease queue;
  gpu::Event event = 0;
};

/// Copies `bytes` bytes within this process, between memory of devices or of the host that the CPU
/// reads, and waits for it; or leaves what a device copies under way in `under_way`.
Status copy_bytes(Runtime& runtime, void* to, const Location& to_place, const void* from,
                  const Location& from_place, std::size_t bytes, CopyUnderWay* under_way = nullptr);

/// Copies the data of a buffer on a device, in the order of its layout and without gaps, to
/// `packed` in host memory, behind what `behind` names.
Status pack_from_device(Runtime& runtime, int device, const void* buffer, std::int64_t count,
                        const Layout& layout, void* packed, std::size_t bytes,
                        const Devices::Behind& behind = nullptr);

/// The opposite, from host memory or from the device's own: the first `bytes` bytes of a buffer's
/// data. What lies between stays untouched.
Status unpack_to_device(Runtime& runtime, int device, const void* packed, std::size_t bytes,
                        void* buffer, std::int64_t count, const Layout& layout,
                        const Devices::Behind& behind = nullptr);

}  // namespace mpress::engine
