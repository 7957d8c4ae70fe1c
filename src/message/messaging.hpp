// What the messages of a rank share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "core/runtime.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "message/chunks.hpp"
#include "message/timings.hpp"
#include "policy/costs.hpp"

namespace mpress::engine {

struct Messaging : Runtime {
  using Runtime::Runtime;

  Chunks chunks{*this};
  Timings timings{*this};
  link::Account held_for_channel;  ///< what messages on their way by the channel hold of memory
  /// Bytes that ranks of this host have on their way by its memory, of blocks that go in windows.
  std::size_t host_window = 0;

  bool gpu_aware = false;   ///< MPI takes memory of devices
  bool raw_by_link = true;  ///< links have what is not encoded, too, whatever MPI could
  /// Whether receives are looked at: all ranks told in MPI_Init whether any may ever send anything
  /// but raw messages, and keep to that.
  bool watches_receives = true;
  /// Whether the program has ever had a session of MPI. A communicator may then come from one, and
  /// its members need not have an MPI_COMM_WORLD, nor mpress at work.
  std::atomic<bool> has_sessions{false};
  /// By medium: what the policy has to assume, to be said when it first does; or empty.
  std::array<std::string, policy::medium_count> lacking_costs;

  /// Does the channel send payloads from memory of devices, and receive them there? Not where a
  /// thread of mpress's calls MPI, which has no context of a device.
  bool hands_devices_to_mpi() const { return gpu_aware && !config.progress_thread; }

  /// Host memory that `device` reaches, or any, where it is the host.
  memory::Buffer take_on_host(int device, std::size_t bytes) {
    return device == gpu::host ? pool.take(bytes) : devices.take_pinned(device, bytes);
  }

 protected:
  ~Messaging() = default;
};

}  // namespace mpress::engine
