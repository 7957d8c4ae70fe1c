#include "trace/timeline.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

namespace mpress::trace {
namespace {

/// Room on the disk, too: a page that finds none when it is first written ends the process.
bool reserve(int fd, off_t bytes) {
  if (::fallocate(fd, 0, 0, bytes) == 0) return true;
  return errno == EOPNOTSUPP && ::ftruncate(fd, bytes) == 0;
}

void* map_file(const std::string& path, std::size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return MAP_FAILED;
  void* memory = MAP_FAILED;
  if (reserve(fd, static_cast<off_t>(bytes))) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (memory == MAP_FAILED) ::unlink(path.c_str());
  ::close(fd);
  errno = error;
  return memory;
}

std::uint64_t wall_ns() {
  timespec t;
  ::clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

/// Threads are numbered as they first have something to note.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const std::uint32_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

bool Timeline::open(const std::string& path, std::uint64_t capacity, int rank) {
  constexpr std::uint64_t most =
      std::numeric_limits<std::int64_t>::max() / sizeof(Slot) - sizeof(TimelineHeader);
  if (capacity > most) {
    errno = EFBIG;
    return false;
  }
  void* memory = map_file(path, sizeof(TimelineHeader) + capacity * sizeof(Slot));
  if (memory == MAP_FAILED) return false;
  auto* header = new (memory) TimelineHeader{};
  header->header_bytes = sizeof(TimelineHeader);
  header->slot_bytes = sizeof(Slot);
  header->capacity = capacity;
  header->opened_ns = now_ns();
  header->opened_wall_ns = wall_ns();
  header->rank = rank;
  header->pid = static_cast<std::uint32_t>(::getpid());
  ::gethostname(header->host, sizeof header->host - 1);
  std::memcpy(header->magic, "mpressT1", 8);
  slots_ = reinterpret_cast<Slot*>(static_cast<char*>(memory) + sizeof(TimelineHeader));
  header_ = header;
  return true;
}

void Timeline::note(Event event) {
  event.thread = thread_number();
  const std::uint64_t number = header_->next.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number % header_->capacity];
  slot.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.event = event;
  slot.number.store(number + 1, std::memory_order_release);
}

}  // namespace mpress::trace
