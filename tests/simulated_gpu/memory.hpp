// The memory of the simulated devices, and what work under way does with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"

namespace mpress::simulated {

inline constexpr int devices = 2;
inline constexpr std::size_t device_bytes = std::size_t{4} << 30;  ///< also of pinned memory

/// Ends the process with a message.
[[noreturn, gnu::format(printf, 1, 2)]] void fault(const char* format, ...);

/// What a piece of work does with memory.
struct Access {
  const std::byte* memory;
  std::size_t bytes;
  bool writes;
  bool sparse = false;  ///< not all of it, so that others may work between its pieces
};

bool overlap(const Access& access, const void* memory, std::size_t bytes);

/// Where each block lies and who has it. Thread-safe; never destroyed.
class Memory {
 public:
  static Memory& instance();

  /// The device of the program's pointers, or gpu::host.
  int locate(const void* pointer) const;

  /// The library's own view, which may be touched; a host pointer stays as it is.
  std::byte* view(const void* pointer) const;

  bool is_pinned(const void* memory, std::size_t bytes);

  /// Null beyond the limit. `place`: a device, or gpu::host for pinned memory.
  void* take(int place, std::size_t bytes, bool by_program);
  void give(int place, void* memory, bool by_program);

  void set_limit(int place, std::size_t bytes);
  std::size_t held(int place);  ///< by mpress

  /// Faults unless the bytes lie in one block of the device.
  void check(int device, const void* memory, std::size_t bytes);

  /// The accesses of a lane's work, until it is known to be done. begin() faults where other lanes'
  /// work, or the program's copies, race with them.
  void begin(const void* lane, std::uint64_t ticket, const std::vector<Access>& accesses);
  void end(const void* lane, std::uint64_t ticket);
  void check_program(const Access& access);

  /// What the process left undone.
  void check_end();

 private:
  struct Block {
    std::size_t bytes;
    bool by_program;
  };
  struct Place {
    std::byte* base = nullptr;  ///< of a device: the program's view; its own is `own`
    std::byte* own = nullptr;
    int file = -1;
    std::map<const std::byte*, Block> blocks;
    std::size_t limit = device_bytes;
    std::size_t taken = 0;
  };
  struct Use {
    const void* lane;
    std::uint64_t ticket;
    Access access;
  };

  Memory();
  Place& place(int number) { return places_[static_cast<std::size_t>(number + 1)]; }
  std::byte* find_room(const Place& place, std::size_t bytes) const;

  std::array<Place, devices + 1> places_;  ///< pinned memory first
  std::mutex mutex_;
  std::vector<Use> uses_;
};

}  // namespace mpress::simulated
