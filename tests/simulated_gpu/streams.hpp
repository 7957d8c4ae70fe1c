// Streams of the program's on simulated devices.
#pragma once

#include <memory>

#include "queue.hpp"

namespace mpress::simulated {

/// The queue behind a stream of the program's; null where it is being captured. Faults for what is
/// no stream of the device. A null stream is the device's default one.
Queue* stream_of(void* stream, int device);

/// As gpu::Gpu has them.
std::shared_ptr<const gpu::PriorWork> work_of(int device, void* stream);
std::shared_ptr<const gpu::PriorWork> default_work(int device);

/// The default stream of `device`, or of the one that is current in this thread, which is given
/// work now: behind all blocking streams.
Queue& default_stream(int device);

/// Copies to the host's memory that take no stream wait for the default ones.
void finish_default_streams();

}  // namespace mpress::simulated
