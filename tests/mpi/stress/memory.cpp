#include "memory.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "failure.hpp"
#include "simulated_gpu.h"

namespace stress {
namespace {

/// Blocks by device and bytes that are used again: messages may be taken from where they lie only
/// if there were others from the same block before.
struct KeptBlocks {
  std::mutex mutex;
  std::map<std::pair<int, std::size_t>, std::vector<std::byte*>> idle;
};
KeptBlocks kept;

std::size_t room(std::size_t size) { return std::bit_ceil(size); }

std::mutex limits;  ///< threads set them, and get round them

std::byte* take(int device, std::size_t size) {
  auto* block = static_cast<std::byte*>(sim_malloc(device, size));
  if (!block) {  // scarce: for mpress alone
    std::lock_guard lock(limits);
    sim_set_limit(device, SIZE_MAX);
    block = static_cast<std::byte*>(sim_malloc(device, size));
    sim_set_limit(device, 0);
  }
  expect(block != nullptr, "a simulated device is full");
  return block;
}

}  // namespace

void limit_memory(int place, std::size_t bytes) {
  std::lock_guard lock(limits);
  sim_set_limit(place, bytes);
}

Memory::~Memory() { release(); }

void Memory::release() {
  if (kept_on_ >= 0) {
    std::lock_guard lock(kept.mutex);
    kept.idle[{kept_on_, room(bytes.size())}].push_back(block_);
  } else {
    sim_free(block_);
  }
  block_ = nullptr;
  kept_on_ = -1;
}

void Memory::resize(std::size_t size) {
  if (device_ >= 0) release();
  bytes.resize(size);
  if (device_ < 0) return;
  // The others are just as large as they must be, so that what goes beyond is noticed.
  constexpr std::size_t least_kept = 16 * 1024;
  if (size < least_kept || size % 8 != 0) {
    block_ = take(device_, size);
    return;
  }
  kept_on_ = device_;
  std::lock_guard lock(kept.mutex);
  auto& idle = kept.idle[{device_, room(size)}];
  if (idle.empty()) {
    block_ = take(device_, room(size));
  } else {
    block_ = idle.back();
    idle.pop_back();
  }
}

void Memory::store() {
  if (block_) sim_copy_in(block_, bytes.data(), bytes.size());
}

void Memory::fetch() {
  if (block_) sim_copy_out(bytes.data(), block_, bytes.size());
}

}  // namespace stress
