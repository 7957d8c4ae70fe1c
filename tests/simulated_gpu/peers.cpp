// Memory of the simulated devices that processes share. The file of a device's memory is opened
// through /proc, and mapped as the memory of one's own is.
//
// Processes know of one another by locks on ranges of that file, which the kernel gives back when a
// process ends, however it ends. Each byte of memory has three: locked by its owner while its block
// is shared; by those who have it open; by whoever's work is using it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory.hpp"

namespace mpress::simulated {
namespace {

enum class Held : std::size_t { open, used, shared };

struct Handle {
  static constexpr std::uint64_t mark = 0x53494d5f4d454d31;
  std::uint64_t magic = mark;
  pid_t process;
  int member;  ///< of it
  int file;
  std::size_t at;
  std::size_t bytes;
  std::uint64_t id;  ///< of the block, in its process
  bool by_program;
};
static_assert(sizeof(Handle) <= sizeof(gpu::MemoryHandle));

struct flock range(Held held, std::size_t at, std::size_t bytes, short type) {
  struct flock result = {};
  result.l_type = type;
  result.l_whence = SEEK_SET;
  result.l_start = static_cast<off_t>(static_cast<std::size_t>(held) * device_bytes + at);
  result.l_len = static_cast<off_t>(bytes);
  return result;
}

/// False where another process's lock is in the way. F_UNLCK unlocks.
bool lock(int file, Held held, std::size_t at, std::size_t bytes, short type) {
  struct flock wanted = range(held, at, bytes, type);
  if (::fcntl(file, F_OFD_SETLK, &wanted) == 0) return true;
  if (errno != EAGAIN && errno != EACCES) fault("no locks: %s", std::strerror(errno));
  return false;
}

/// Has another process such a lock that one of this type would be in its way?
bool is_locked(int file, Held held, std::size_t at, std::size_t bytes, short type) {
  struct flock wanted = range(held, at, bytes, type);
  if (::fcntl(file, F_OFD_GETLK, &wanted) != 0) fault("no locks: %s", std::strerror(errno));
  return wanted.l_type != F_UNLCK;
}

bool is_same_file(int a, int b) {
  struct stat of_a, of_b;
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_ino == of_b.st_ino &&
         of_a.st_dev == of_b.st_dev;
}

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// In place of what is mapped there. No file: as if nothing were.
bool map_over(std::byte* memory, std::size_t bytes, int file, std::size_t at) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  const int protection = file < 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
  return ::mmap(memory, bytes, protection, flags | MAP_NORESERVE | MAP_FIXED, file,
                static_cast<off_t>(at)) != MAP_FAILED;
}

}  // namespace

bool Memory::is_opened(const void* memory) const {
  const int device = locate(memory);
  return device != gpu::host &&
         static_cast<const std::byte*>(memory) >=
             places_[static_cast<std::size_t>(device + 1)].base + device_bytes;
}

bool Memory::share(int device, void* memory, gpu::MemoryHandle& handle) {
  std::lock_guard guard(mutex_);
  Place& p = place(device);
  const auto* const begin = static_cast<const std::byte*>(memory);
  const auto it = p.blocks.find(begin);
  if (it == p.blocks.end() || it->second.peer_file >= 0) {
    fault("%p is shared, which is no block on device %d", memory, device);
  }
  Block& block = it->second;
  if (block.is_of_pool) return false;
  const Handle made{.process = ::getpid(),
                    .member = own_member(),
                    .file = p.file,
                    .at = static_cast<std::size_t>(begin - p.base),
                    .bytes = block.bytes,
                    .id = block.id,
                    .by_program = block.by_program};
  handle = {};
  std::memcpy(handle.data(), &made, sizeof made);
  if (block.shared) return true;
  block.shared = true;
  lock(p.file, Held::shared, made.at, made.bytes, F_WRLCK);
  uses_.overlapping(begin, block.bytes, [&](const Access& use) { lock_use(use); });
  return true;
}

/// A block of the program's may be open elsewhere. Its memory is another's here then, although a
/// driver would keep it: whoever still reads it there finds that out.
void Memory::unshare(const Place& p, const std::byte* memory, const Block& block) {
  const auto at = static_cast<std::size_t>(memory - p.base);
  if (!block.by_program && is_locked(p.file, Held::open, at, block.bytes, F_WRLCK)) {
    fault("a block is released that another process has open: %p, %zu bytes",
          static_cast<const void*>(memory), block.bytes);
  }
  if (is_locked(p.file, Held::used, at, block.bytes, F_WRLCK)) {
    fault("a block is released that another process uses: %p, %zu bytes",
          static_cast<const void*>(memory), block.bytes);
  }
  lock(p.file, Held::shared, at, block.bytes, F_UNLCK);
}

bool Memory::find_block(const void* pointer, gpu::Block& found) {
  const auto* const at = static_cast<const std::byte*>(pointer);
  const int device = locate(pointer);
  if (device == gpu::host) return false;
  std::lock_guard guard(mutex_);
  Place& p = place(device);
  const auto it = p.blocks.upper_bound(at);
  if (it == p.blocks.begin()) return false;
  const auto& [begin, block] = *std::prev(it);
  if (at >= begin + block.bytes || !block.by_program) return false;
  found = {const_cast<std::byte*>(begin), block.bytes, block.id};
  return true;
}

void Memory::map(const void* memory, std::size_t bytes) {
  std::lock_guard guard(mutex_);
  if (!mapped_.emplace(static_cast<const std::byte*>(memory), bytes).second) {
    fault("memory is mapped twice: %p", memory);
  }
}

void Memory::unmap(const void* memory) {
  std::lock_guard guard(mutex_);
  if (mapped_.erase(static_cast<const std::byte*>(memory)) == 0) {
    fault("memory is unmapped that is not mapped: %p", memory);
  }
}

bool Memory::is_mapped(const void* memory, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(memory);
  std::lock_guard guard(mutex_);
  const auto it = mapped_.upper_bound(at);
  return it != mapped_.begin() && at + bytes <= std::prev(it)->first + std::prev(it)->second;
}

void* Memory::open(int device, const gpu::MemoryHandle& handle) {
  const char* const peers = std::getenv("SIMULATED_GPU_PEERS");
  Handle from;
  std::memcpy(&from, handle.data(), sizeof from);
  if (from.magic != Handle::mark) return nullptr;
  if (from.process == ::getpid() && from.member == own_member()) {
    fault("a process opens a block of its own");
  }
  const bool open = std::getenv("SIMULATED_GPU_OPEN") != nullptr;
  if (open && from.by_program) fault("a program's block is opened, which MPI may have open");
  if (peers && std::strcmp(peers, "0") == 0) return nullptr;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(from.process), from.file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  if (!is_locked(file, Held::shared, from.at, from.bytes, F_RDLCK)) {  // its program has freed it
    ::close(file);
    return nullptr;
  }

  std::lock_guard guard(mutex_);
  Place& p = place(device);
  for (const auto& [begin, block] : p.blocks) {
    if (block.peer_file >= 0 && block.peer_at == from.at && block.peer_id == from.id &&
        is_same_file(block.peer_file, file)) {
      fault("a block is opened twice for device %d", device);
    }
  }
  const std::size_t first = from.at / page() * page();
  const std::size_t bytes = rounded(from.at + from.bytes, page()) - first;
  std::byte* const room = find_room(p.blocks, p.base + device_bytes, bytes, page());
  if (!room || !map_over(p.own + (room - p.base), bytes, file, first) ||
      (open && !map_over(room, bytes, file, first))) {
    fault("no room to open %zu bytes of another process", from.bytes);
  }
  lock(file, Held::open, from.at, from.bytes, F_RDLCK);
  std::byte* const memory = room + (from.at - first);
  p.blocks[memory] = {.bytes = from.bytes,
                      .by_program = false,
                      .peer_file = file,
                      .peer_at = from.at,
                      .peer_id = from.id,
                      .peer_program = from.by_program};
  return memory;
}

void Memory::close(int device, void* memory) {
  std::lock_guard guard(mutex_);
  Place& p = place(device);
  auto* const begin = static_cast<std::byte*>(memory);
  const auto it = p.blocks.find(begin);
  if (it == p.blocks.end() || it->second.peer_file < 0) {
    fault("a block is closed that is not open: %p", memory);
  }
  const Block block = it->second;
  check_idle(begin, block.bytes, "closed");
  const std::size_t before = block.peer_at % page();
  const std::size_t bytes = rounded(before + block.bytes, page());
  map_over(begin - before, bytes, -1, 0);
  map_over(p.own + (begin - before - p.base), bytes, -1, 0);
  ::close(block.peer_file);  // gives back its locks
  p.blocks.erase(it);
}

/// Does it lie in a block of another process's program?
bool Memory::is_lent(const void* memory) {
  if (!is_opened(memory)) return false;
  const Place& p = place(locate(memory));
  const auto* const at = static_cast<const std::byte*>(memory);
  return std::prev(p.blocks.upper_bound(at))->second.peer_program;
}

std::optional<Memory::Lock> Memory::lock_of(const Access& access) {
  const int device = locate(access.memory);
  if (device == gpu::host || access.bytes == 0 || access.sparse) return {};
  const Place& p = place(device);
  const auto& [begin, block] = *std::prev(p.blocks.upper_bound(access.memory));
  const short type = access.writes ? F_WRLCK : F_RDLCK;
  if (block.peer_file >= 0) {
    const auto within = static_cast<std::size_t>(access.memory - begin);
    return Lock{block.peer_file, block.peer_at + within, access.bytes, type};
  }
  if (!block.shared) return {};
  return Lock{p.file, static_cast<std::size_t>(access.memory - p.base), access.bytes, type};
}

/// Would the program's access race with work of another process?
bool Memory::is_used_elsewhere(const Access& access) {
  const int device = locate(access.memory);
  if (device == gpu::host || access.bytes == 0) return false;
  const Place& p = place(device);
  const auto& [begin, block] = *std::prev(p.blocks.upper_bound(access.memory));
  return block.shared &&
         is_locked(p.file, Held::used, static_cast<std::size_t>(access.memory - p.base),
                   access.bytes, access.writes ? F_WRLCK : F_RDLCK);
}

void Memory::lock_use(const Access& access) {
  const std::optional<Lock> wanted = lock_of(access);
  if (wanted && !lock(wanted->file, Held::used, wanted->at, wanted->bytes, wanted->type)) {
    fault("two processes race for %p, %zu bytes", static_cast<const void*>(access.memory),
          access.bytes);
  }
}

void Memory::unlock_use(const Access& access) {
  const std::optional<Lock> kept = lock_of(access);
  if (!kept) return;
  lock(kept->file, Held::used, kept->at, kept->bytes, F_UNLCK);
  // Locks of a process on the same bytes are one.
  uses_.overlapping(access.memory, access.bytes, [&](const Access& use) { lock_use(use); });
}

}  // namespace mpress::simulated
