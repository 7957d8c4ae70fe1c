// Host memory that stands in for a buffer in device memory while MPI works on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

class Job;

/// An image of the buffer from its first byte of data to its last, laid out as the program's types
/// say: MPI gets the program's own arguments with another address. Only data are copied, neither
/// what lies between them nor beside.
class BounceBuffer {
 public:
  /// The device that the operand's memory is on.
  static int device_of(Job& job, const Operand& operand);
  static bool is_on_device(Job& job, const Operand& operand) {
    return device_of(job, operand) != gpu::host;
  }

  /// Is it one that MPI should not see? An MPI that takes memory of devices copies each run of a
  /// type with gaps by itself.
  static bool is_needed(Job& job, const Operand& operand);

  /// Makes room. Returns an MPI error code. The types are not used any more afterwards. The address
  /// will not be `other`, that of the call's other buffer: where data lie far behind their buffer's
  /// address, it is outside of the image, and Open MPI takes equal ones for MPI_IN_PLACE.
  int open(Job& job, const Operand& operand, const void* other);

  explicit operator bool() const { return static_cast<bool>(image_); }

  /// What MPI gets in place of the buffer's address.
  void* address() const;

  /// Waits for what the program's default streams hold on the buffer's devices. Returns an MPI
  /// error code.
  int await_defaults(Job& job) const;

  /// Brings what the call reads, or takes back what it wrote. Return an MPI error code.
  int fetch(Job& job);
  int deliver(Job& job);

 private:
  /// Data in memory of one device, or of the host beside that.
  struct Piece {
    int device;
    std::size_t bytes = 0;
    gpu::RunList runs;
  };
  using Pieces = std::vector<Piece>;
  enum class Way { to_image, to_device };

  static bool list(Job& job, const void* buffer, const Blocks& blocks, Pieces& pieces);
  std::byte* image_of(const gpu::Run& run) const;
  std::byte* original_of(const gpu::Run& run) const;
  int copy(Job& job, const Pieces& pieces, Way way) const;
  int copy_each(Job& job, const Piece& piece, Way way) const;
  int copy_packed(Job& job, const Piece& piece, Way way, std::byte* packed, std::byte* aside) const;

  const void* buffer_ = nullptr;
  Pieces reads_;
  Pieces writes_;
  memory::Buffer image_;
  std::uintptr_t shift_ = 0;  ///< from an address in the buffer to its place in the image
};

}  // namespace mpress::engine
