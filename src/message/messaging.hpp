// What the messages of a rank share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/hints.hpp"
#include "core/learning/timings.hpp"
#include "core/runtime.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "message/chunks.hpp"
#include "message/header_forecast.hpp"
#include "message/in_place.hpp"
#include "message/location_sample.hpp"
#include "policy/agreed_costs.hpp"
#include "policy/costs.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Messaging : Runtime {
  using Runtime::Runtime;

  Chunks chunks{*this};
  Timings timings{*this};
  /// Bytes that ranks of this host have on their way by its memory, of blocks that go in windows.
  std::size_t host_window = 0;

  policy::AgreedCosts agreed_costs;  ///< of collective calls, once all ranks agreed on them

  bool raw_is_mpis = false;         ///< MPI gets all that is not encoded, in memory of devices, too
  bool gets_device_chunks = false;  ///< some rank's MPI takes memory of devices
  std::atomic<bool> has_got_frames{false};

  // Of receives:
  InPlaceReceives in_place;
  HeaderForecast forecast;   ///< where MPI takes memory of devices
  LocationSample locations;  ///< where MPI gets all that is not encoded

  /// Bytes of the shortest messages of programs that any rank may send as a frame or a header; all
  /// ranks tell each other in MPI_Init, and keep to it where no hint asks for less.
  static constexpr std::size_t never = SIZE_MAX;
  std::size_t least_framed_bytes = wire::min_frame_bytes;
  HintBounds hint_bounds;

  /// Whether the program has ever had a session of MPI. A communicator may then come from one, and
  /// its members need not have an MPI_COMM_WORLD, nor mpress at work.
  std::atomic<bool> has_sessions{false};
  /// By medium: what the policy has to assume, to be said when it first does; or empty.
  std::array<std::string, policy::medium_count> lacking_costs;
  std::array<std::atomic<bool>, policy::medium_count> are_lacking_costs_said{};

  /// May any rank ever send anything but raw messages?
  bool watches_receives() const { return least_framed_bytes != never; }

  /// Bytes from which on a receive of the program's expects frames; those of a collective call's
  /// blocks always do.
  std::size_t least_watched_bytes() const {
    if (!watches_receives()) return never;
    return std::max(wire::min_frame_bytes,
                    std::min(least_framed_bytes, hint_bounds.least_threshold()));
  }

  /// May the data of messages follow their headers, as far as this process has seen?
  bool expects_data() const { return links.are_used() || progress.is_threaded(); }

  /// Host memory that `device` reaches, or any, where it is the host.
  memory::Buffer take_on_host(int device, std::size_t bytes) {
    return device == gpu::host ? pool.take(bytes) : devices.take_pinned(device, bytes);
  }

 protected:
  ~Messaging() = default;
};

}  // namespace mpress::engine
