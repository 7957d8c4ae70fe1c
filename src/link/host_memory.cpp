#include "link/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace mpress::link {

HostMemory::HostMemory(HostMemory&& other) noexcept
    : head_(std::exchange(other.head_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      file_(std::exchange(other.file_, -1)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(head_, other.head_);
  std::swap(mapped_, other.mapped_);
  std::swap(file_, other.file_);
  return *this;
}

HostMemory::~HostMemory() {
  if (head_) ::munmap(head_, mapped_);
  if (file_ >= 0) ::close(file_);
}

bool HostMemory::map(int file, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return false;
  head_ = static_cast<Head*>(memory);
  mapped_ = bytes;
  return true;
}

HostMemory HostMemory::create(const Nonce& nonce, int rank, std::size_t bytes) {
  HostMemory made;
  const std::size_t all = head_bytes + bytes;
  made.file_ = ::memfd_create("mpress-host", MFD_CLOEXEC);
  if (made.file_ < 0 || ::ftruncate(made.file_, static_cast<off_t>(all)) != 0) return {};
  if (!made.map(made.file_, all)) return {};
  *made.head_ = {nonce, bytes, rank};
  return made;
}

HostMemory HostMemory::open(const Address& address, const Nonce& nonce, int rank,
                            std::size_t bytes) {
  HostMemory found;
  if (address.file < 0) return found;
  const std::string path =
      "/proc/" + std::to_string(address.pid) + "/fd/" + std::to_string(address.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return found;
  // In a container of its own, that number may be another process's.
  struct stat status {};
  const std::size_t all = head_bytes + bytes;
  const bool fits = ::fstat(file, &status) == 0 && status.st_size == static_cast<off_t>(all) &&
                    S_ISREG(status.st_mode);
  if (fits) found.map(file, all);
  ::close(file);
  if (!found || found.head_->nonce != nonce || found.head_->rank != rank ||
      found.head_->bytes != bytes) {
    return {};
  }
  return found;
}

HostMemory::Address HostMemory::address() const {
  return {head_ ? static_cast<std::int32_t>(::getpid()) : 0, file_};
}

}  // namespace mpress::link
