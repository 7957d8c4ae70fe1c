// Counts what may undo a decision about messages of a type and a communicator: the end of either,
// new hints, a session, a link whose rate is another one.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpress::engine {

inline constinit std::atomic<std::uint64_t> changes{0};

inline void note_change() { changes.fetch_add(1, std::memory_order_release); }

}  // namespace mpress::engine
