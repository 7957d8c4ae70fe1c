// Memory that the processes of one host share: each has a piece, which the others map.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mpress::link {

/// One process's piece, as mapped here. It ends with the last process that maps it, however those
/// end: there is no file to be left behind. Its pages exist once they are touched, all zero.
class HostMemory {
 public:
  using Nonce = std::array<std::uint8_t, 16>;

  /// Where a process keeps its piece, for others of its host to find.
  struct Address {
    std::int32_t pid = 0;
    std::int32_t file = -1;  ///< a descriptor of that process; negative: it has none
  };

  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  /// A piece of this process's own, with room for `bytes`; empty where the system refuses. `nonce`
  /// is the job's and `rank` its own in MPI_COMM_WORLD; open() checks both.
  static HostMemory create(const Nonce& nonce, int rank, std::size_t bytes);
  /// What is said then.
  static constexpr const char* none_left = "there is no memory that processes may share";

  /// That of another process; empty where this one cannot map it, or finds something else there.
  static HostMemory open(const Address& address, const Nonce& nonce, int rank, std::size_t bytes);

  /// The first byte of the room, on a boundary of 4096; null where this is empty.
  std::byte* data() const {
    return head_ ? reinterpret_cast<std::byte*>(head_) + head_bytes : nullptr;
  }
  explicit operator bool() const { return head_ != nullptr; }

  /// Of a piece that create() made.
  Address address() const;

 private:
  struct Head {
    Nonce nonce;
    std::uint64_t bytes;
    std::int32_t rank;
  };
  static constexpr std::size_t head_bytes = 4096;

  bool map(int file, std::size_t bytes);

  Head* head_ = nullptr;
  std::size_t mapped_ = 0;
  int file_ = -1;
};

}  // namespace mpress::link
