// What a kernel writes when all of it is done.
#pragma once

#include <cstdint>

namespace mpress::gpu {

struct Tell {
  unsigned* counter;    ///< of the device's, 0 between kernels
  std::uint32_t* done;  ///< gets `value`, which the host sees
  std::uint32_t value;
  std::uint32_t* flag = nullptr;  ///< gets 1, too; null: none
};

}  // namespace mpress::gpu
