// Rates of links between devices of a host, measured where no profile has them.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/devices.hpp"
#include "core/learning/host_rate.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

struct Runtime;

/// A rank that first gets a long message from another as it is, or first makes a long collective
/// call with it by kernels, reads some of the other's memory once more and takes the time: messages
/// and calls themselves cannot tell, as ranks may come to them late. The fastest of a host's links
/// counts for all of them: so none is taken for slower than it is. Of messages that a device
/// acknowledges by itself nothing is read again; a buffer's first one is not such. Thread-safe.
class LinkedRate {
 public:
  /// From now on it is measured. `sheet`: of the host's first rank; or null.
  void open(link::Sheet* sheet);

  /// In memory of `rank`'s device so many bytes lie at `from`, which queues of `device` reach, and
  /// stay until this returns. Where that rank is still to be measured, waits for the device: 0.1 to
  /// 3 ms; after 250 no other rank is measured any more. `by`: what gave the occasion, for reports;
  /// a literal.
  void measure(Runtime& runtime, int rank, int device, const std::byte* from, std::size_t bytes,
               const char* by);

  /// Takes over a rate that another rank of this host has published since; `device`: one of this
  /// process's.
  void adopt_published(Runtime& runtime, int device);

 private:
  bool begin(int rank, std::size_t bytes);
  void end_tries(int rank);
  void take(Runtime& runtime, int device, double rate, const char* by);

  bool is_open_ = false;
  HostRate of_host_;
  /// Memory and queue of a measurement that a device may still work at.
  struct GivenUp {
    memory::Buffer to;
    QueueLease queue;  ///< destroyed first
  };

  struct Measured {
    int rank;
    int tries;  ///< most_tries: there will be no other
  };

  mutable std::mutex mutex_;
  std::vector<Measured> measured_;
  std::vector<GivenUp> given_up_;
};

}  // namespace mpress::engine
