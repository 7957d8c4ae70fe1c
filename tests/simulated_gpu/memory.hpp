// The memory of the simulated devices, and what work under way does with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/gpu.hpp"
#include "member.hpp"
#include "uses.hpp"

namespace mpress::simulated {

inline constexpr int devices = 2;
inline constexpr std::size_t device_bytes = std::size_t{4} << 30;  ///< also of pinned memory
/// A device's addresses: its memory, then what it has opened of other processes.
inline constexpr std::size_t device_span = 2 * device_bytes;

/// Ends the process with a message.
[[noreturn, gnu::format(printf, 1, 2)]] void fault(const char* format, ...);

inline std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// A member's: where each block lies and who has it. Thread-safe; never destroyed.
class Memory {
 public:
  /// That of the member that this thread works for.
  static Memory& instance();

  /// The device of the program's pointers, or gpu::host.
  int locate(const void* pointer) const;

  /// The library's own view, which may be touched; a host pointer stays as it is.
  std::byte* view(const void* pointer) const;

  /// Do devices reach all of it, as pinned memory or as mapped?
  bool is_pinned(const void* memory, std::size_t bytes);

  /// Null beyond the limit. `place`: a device, or gpu::host for pinned memory.
  void* take(int place, std::size_t bytes, bool by_program, bool is_of_pool = false);
  void give(int place, void* memory, bool by_program);

  void set_limit(int place, std::size_t bytes);
  std::size_t held(int place);  ///< by mpress

  /// Memory between processes (peers.cpp). What gpu::Gpu has to say of it holds.
  bool share(int device, void* memory, gpu::MemoryHandle& handle);
  void* open(int device, const gpu::MemoryHandle& handle);
  void close(int device, void* memory);
  bool is_opened(const void* memory) const;
  bool find_block(const void* pointer, gpu::Block& block);
  void map(const void* memory, std::size_t bytes);
  void unmap(const void* memory);
  bool is_mapped(const void* memory, std::size_t bytes);

  /// Faults unless the bytes lie in one block of the device.
  void check(int device, const void* memory, std::size_t bytes);
  /// The same of what several devices work at: of the device, or of the host and pinned.
  void check_joint(int device, const void* memory, std::size_t bytes);

  /// The accesses of a queue's work, until it is known to be done. begin() faults where other
  /// queues' work, or the program's copies, race with them, or other processes' work on shared
  /// blocks.
  void begin(const void* queue, std::uint64_t event, const std::vector<Access>& accesses);
  void end(const void* queue, std::uint64_t event);
  void check_program(const Access& access);

  /// What the process left undone.
  void check_end();

 private:
  struct Block {
    std::size_t bytes;
    bool by_program;
    bool is_of_pool = false;  ///< which cannot be shared
    std::uint64_t id = 0;
    bool shared = false;
    /// Of a block that another process shares: its device's memory, and where it lies there.
    int peer_file = -1;
    std::size_t peer_at = 0;
    std::uint64_t peer_id = 0;
    bool peer_program = false;  ///< that process's program has it
  };
  using Blocks = std::map<const std::byte*, Block>;
  struct Place {
    std::byte* base = nullptr;  ///< of a device: the program's view; the library's is `own`
    std::byte* own = nullptr;
    int file = -1;
    Blocks blocks;
    std::size_t limit = device_bytes;
    std::size_t taken = 0;
  };

  friend class OfMembers<Memory>;
  Memory();
  Place& place(int number) { return places_[static_cast<std::size_t>(number + 1)]; }
  /// Room for `bytes` bytes among the blocks from `begin` on, a multiple of `unit` behind it; null
  /// where device_bytes have none.
  static std::byte* find_room(const Blocks& blocks, std::byte* begin, std::size_t bytes,
                              std::size_t unit);
  /// Faults where work under way uses the bytes of what is being `done` away with.
  void check_idle(const std::byte* memory, std::size_t bytes, const char* done) const;

  /// What other processes must not do meanwhile, where they can reach the memory.
  struct Lock {
    int file;
    std::size_t at;
    std::size_t bytes;
    short type;
  };
  bool is_lent(const void* memory);
  std::optional<Lock> lock_of(const Access& access);
  bool is_used_elsewhere(const Access& access);
  void lock_use(const Access& access);
  void unlock_use(const Access& access);
  void unshare(const Place& place, const std::byte* memory, const Block& block);

  std::array<Place, devices + 1> places_;  ///< pinned memory first
  std::mutex mutex_;
  Uses uses_;
  std::map<const std::byte*, std::size_t> mapped_;  ///< bytes of host memory that queues may write
  std::uint64_t blocks_ = 0;                        ///< that were ever taken
};

}  // namespace mpress::simulated
