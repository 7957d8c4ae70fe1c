// What a kernel writes when all of it is done.
#pragma once

#include <cstdint>

namespace mpress::gpu {

struct Tell {
  /// Of the device's, all 0 between kernels.
  struct Counters {
    unsigned blocks;            ///< that are done
    unsigned long long sum[2];  ///< what a kernel counts for itself
    struct {
      unsigned long long least, greatest;
    } range;  ///< keys of what a kernel has read (codec/szp/range_keys.cuh)
  };

  Counters* counters;
  std::uint32_t* done;  ///< gets `value`, which the host sees
  std::uint32_t value;
  std::uint32_t* flag = nullptr;  ///< gets 1, too; null: none
};

}  // namespace mpress::gpu
