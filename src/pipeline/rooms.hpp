// Memory to which a link copies chunks, before they go where they belong: each piece of it is given
// to one chunk after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/runtime.hpp"

namespace mpress::engine {

class Rooms {
 public:
  static constexpr std::size_t most = 8;

  /// `memory_device`: the device whose memory it is, or the host; that is pinned for `device`.
  Rooms(Runtime& runtime, int device, int memory_device, std::size_t bytes)
      : runtime_(runtime), device_(device), memory_device_(memory_device), bytes_(bytes) {}

  int memory_device() const { return memory_device_; }

  /// One more. False: there is no memory.
  bool add() {
    memory::Buffer room = memory_device_ == gpu::host
                              ? runtime_.devices.take_pinned(device_, bytes_)
                              : runtime_.devices.take(device_, bytes_);
    if (!room) return false;
    free_.push_back(rooms_.size());
    rooms_.push_back(std::move(room));
    return true;
  }

  /// Of a chunk, asked for in order, once or several times; null: there is none now.
  std::byte* of(std::uint64_t chunk) {
    if (chunk < placed_) return rooms_[number(chunk)].data();
    if (placed_ == given_back_ + most) return nullptr;
    // Without one more, those that there are serve, or there will be one.
    if (free_.empty() && !add()) return nullptr;
    number(placed_++) = free_.back();
    free_.pop_back();
    return rooms_[number(chunk)].data();
  }

  /// The first `chunks` chunks need theirs no longer.
  void give_back(std::uint64_t chunks) {
    for (; given_back_ < std::min(chunks, placed_); ++given_back_) {
      free_.push_back(number(given_back_));
    }
  }

 private:
  std::size_t& number(std::uint64_t chunk) { return numbers_[chunk % most]; }

  Runtime& runtime_;
  const int device_;
  const int memory_device_;
  const std::size_t bytes_;
  std::vector<memory::Buffer> rooms_;
  std::vector<std::size_t> free_;
  std::array<std::size_t, most> numbers_{};  ///< by chunk
  std::uint64_t placed_ = 0;                 ///< chunks that got one
  std::uint64_t given_back_ = 0;
};

}  // namespace mpress::engine
