// The runtime of a rank: configuration, pools, devices, links, clocks, and the record of its
// messages. It knows no MPI; the binding derives what it needs beside (Job).
#pragma once

#include <cstddef>
#include <string>

#include "config/config.hpp"
#include "core/devices.hpp"
#include "core/endpoints.hpp"
#include "core/learning/linked_rate.hpp"
#include "core/links.hpp"
#include "core/progress.hpp"
#include "core/progress_thread.hpp"
#include "link/pacer.hpp"
#include "memory/buffer_pool.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Runtime {
  /// `rounds`: see Progress.
  explicit Runtime(Progress::Rounds rounds) : progress(rounds) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Config config;
  /// The process runs with these, beside its configuration.
  struct {
    std::string mpi;           ///< name and number of the MPI: mpi_name()
    bool takes_specs = false;  ///< calls of mpress's own interface may name codecs of their own
  } surroundings;
  bool gpu_aware = false;   ///< MPI takes memory of devices
  bool raw_by_link = true;  ///< links have what is not encoded, too, whatever MPI could
  wire::Nonce nonce{};
  int rank = 0;
  int size = 0;
  std::size_t chunk_bytes = 0;  ///< of elements, in chunks of messages; 0: none is cut

  trace::Record record;
  policy::Policy policy;
  memory::BufferPool pool{256u << 20};
  Devices devices{*this};
  LinkedRate linked_rate;
  Progress progress;
  ProgressThread progress_thread{progress};

  link::Pacer pacer;
  Links links;
  Endpoints endpoints{links};

  /// Does the channel send payloads from memory of devices, and receive them there? Not where a
  /// thread of mpress's calls MPI, which has no context of a device.
  bool hands_devices_to_mpi() const { return gpu_aware && !config.progress_thread; }

 protected:
  ~Runtime() = default;
};

}  // namespace mpress::engine
