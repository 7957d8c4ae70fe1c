// Device memory of another process that this one has opened, once for each device of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/slots/slot.hpp"

namespace mpress::link {

/// Not thread-safe.
class Opened {
 public:
  /// Block `number` as `device` reaches it, or else `first_device`, which `device` is then set to.
  /// Null where it cannot be opened, which is tried once.
  void* open(std::uint32_t number, const SharedBlock& block, int& device, int first_device) {
    const auto row = static_cast<std::size_t>(device);
    if (row < all_.size() && number < all_[row].size() && all_[row][number].memory) {
      return all_[row][number].memory;
    }
    return open_new(number, block, device, first_device);
  }

  void close();

 private:
  void* open_new(std::uint32_t number, const SharedBlock& block, int& device, int first_device);

  struct Mapping {
    void* memory = nullptr;
    bool is_tried = false;
  };
  std::vector<std::vector<Mapping>> all_;  ///< by device and number
};

}  // namespace mpress::link
