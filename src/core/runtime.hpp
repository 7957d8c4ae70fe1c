// The runtime of a rank: configuration, pools, devices, links, clocks, and the record of its
// messages. It knows no MPI; the binding derives what it needs beside (Job).
#pragma once

#include <atomic>
#include <cstddef>

#include "config/config.hpp"
#include "core/devices.hpp"
#include "core/endpoints.hpp"
#include "core/linked_rate.hpp"
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
  /// The system gives no memory for links between GPUs, which is still to be said.
  std::atomic<bool> has_nothing_to_share{false};

 protected:
  ~Runtime() = default;
};

}  // namespace mpress::engine
