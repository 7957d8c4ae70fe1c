// Memory of a call's buffer: the host's, or that of a simulated device, which the program cannot
// look into.
#pragma once

#include <cstddef>
#include <vector>

namespace stress {

/// As sim_set_limit(), of a device or of pinned memory, in any thread: for mpress alone.
void limit_memory(int place, std::size_t bytes);

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// From the next resize() on; `device` may be negative: the host.
  void place(int device) { device_ = device; }
  void resize(std::size_t bytes);

  bool is_on_device() const { return block_ != nullptr; }

  /// What MPI is given.
  std::byte* data() { return block_ ? block_ : bytes.data(); }

  /// Makes what MPI is given hold `bytes`, or the reverse.
  void store();
  void fetch();

  std::vector<std::byte> bytes;

 private:
  void release();

  int device_ = -1;
  std::byte* block_ = nullptr;  ///< on a device
  int kept_on_ = -1;            ///< the block's device, if others will have it next
};

}  // namespace stress
