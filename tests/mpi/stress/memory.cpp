#include "memory.hpp"

#include <cstdint>

#include "failure.hpp"
#include "simulated_gpu.h"

namespace stress {

Memory::~Memory() { sim_free(block_); }

void Memory::resize(std::size_t size) {
  bytes.resize(size);
  if (device_ < 0) return;
  sim_free(block_);
  block_ = static_cast<std::byte*>(sim_malloc(device_, size));
  if (!block_) {  // scarce: for mpress alone
    sim_set_limit(device_, SIZE_MAX);
    block_ = static_cast<std::byte*>(sim_malloc(device_, size));
    sim_set_limit(device_, 0);
  }
  expect(block_ != nullptr, "a simulated device is full");
}

void Memory::store() {
  if (block_) sim_copy_in(block_, bytes.data(), bytes.size());
}

void Memory::fetch() {
  if (block_) sim_copy_out(bytes.data(), block_, bytes.size());
}

}  // namespace stress
