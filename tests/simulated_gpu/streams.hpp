// Streams of the program's on simulated devices.
#pragma once

#include "queue.hpp"

namespace mpress::simulated {

/// The queue behind a stream of the program's; null where it is being captured. Faults for what is
/// no stream of the device. A null stream is the device's default one.
Queue* stream_of(void* stream, int device);

/// The program's copies that take no stream wait for the default one.
void finish_default_stream(int device);

}  // namespace mpress::simulated
