#include "link/peer/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace mpress::link {
namespace {

PeerSegment* map(int file) {
  void* memory = ::mmap(nullptr, sizeof(PeerSegment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<PeerSegment*>(memory);
}

}  // namespace

MappedSegment::MappedSegment(MappedSegment&& other) noexcept
    : segment_(std::exchange(other.segment_, nullptr)), file_(std::exchange(other.file_, -1)) {}

MappedSegment& MappedSegment::operator=(MappedSegment&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(file_, other.file_);
  return *this;
}

MappedSegment::~MappedSegment() {
  if (segment_) ::munmap(segment_, sizeof(PeerSegment));
  if (file_ >= 0) ::close(file_);
}

MappedSegment MappedSegment::create(const std::array<std::uint8_t, 16>& nonce, int rank) {
  MappedSegment made;
  made.file_ = ::memfd_create("mpress", MFD_CLOEXEC);
  if (made.file_ < 0 || ::ftruncate(made.file_, sizeof(PeerSegment)) != 0) return {};
  made.segment_ = map(made.file_);
  if (!made.segment_) return {};
  made.segment_->nonce = nonce;
  made.segment_->version = PeerSegment::layout;
  made.segment_->rank = rank;
  return made;
}

MappedSegment MappedSegment::open(const SegmentAddress& address,
                                  const std::array<std::uint8_t, 16>& nonce, int rank) {
  MappedSegment found;
  const std::string path =
      "/proc/" + std::to_string(address.pid) + "/fd/" + std::to_string(address.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return found;
  // In a container of its own, that number may be another process's.
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_size == sizeof(PeerSegment)) {
    found.segment_ = map(file);
  }
  ::close(file);
  if (!found || found->nonce != nonce || found->version != PeerSegment::layout ||
      found->rank != rank) {
    return {};
  }
  return found;
}

SegmentAddress MappedSegment::address() const {
  return {segment_ ? static_cast<std::int32_t>(::getpid()) : 0, file_};
}

}  // namespace mpress::link
