#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace mpress::simulated {
namespace {

constexpr std::size_t alignment = 256;
constexpr int rubbish = 0xdb;

/// Memory of the host, of large pages where it is much: all of it is touched.
std::byte* take_pinned(std::size_t bytes) {
  constexpr std::size_t large = std::size_t{2} << 20;
  const bool is_large = bytes >= 2 * large;
  const std::size_t unit = is_large ? large : alignment;
  void* const memory = std::aligned_alloc(unit, rounded(bytes, unit));
  if (memory && is_large) ::madvise(memory, bytes, MADV_HUGEPAGE);
  if (memory) std::memset(memory, rubbish, bytes);
  return static_cast<std::byte*>(memory);
}

/// Do two that overlap?
bool race(const Access& a, const Access& b) {
  return (a.writes || b.writes) && !a.sparse && !b.sparse;
}

/// Writes rubbish by way of the file: pages that nobody touches later are never mapped, which takes
/// half the time that touching them would.
void spoil_file(int file, std::size_t at, std::size_t bytes) {
  static const std::vector<std::byte> piece(std::size_t{1} << 18, std::byte{rubbish});
  while (bytes > 0) {
    const ssize_t written =
        ::pwrite(file, piece.data(), std::min(bytes, piece.size()), static_cast<off_t>(at));
    if (written <= 0) fault("no memory for a device");
    at += static_cast<std::size_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void fault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "simulated GPU: %s\n", text);
  std::abort();
}

Memory& Memory::instance() {
  static OfMembers<Memory> memories;
  return memories.own();
}

Memory::Memory() {
  for (int device = 0; device < devices; ++device) {
    Place& p = place(device);
    p.file = ::memfd_create("simulated GPU", MFD_CLOEXEC);
    if (p.file < 0 || ::ftruncate(p.file, device_bytes) != 0) fault("no memory file");
    const auto map = [&](int protection) {
      void* const memory = ::mmap(nullptr, device_span, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED ||
          ::mmap(memory, device_bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, p.file,
                 0) == MAP_FAILED) {
        fault("the memory of a device cannot be mapped");
      }
      return static_cast<std::byte*>(memory);
    };
    const bool open = std::getenv("SIMULATED_GPU_OPEN") != nullptr;
    p.base = map(open ? PROT_READ | PROT_WRITE : PROT_NONE);
    p.own = map(PROT_READ | PROT_WRITE);
  }
}

int Memory::locate(const void* pointer) const {
  const auto* const at = static_cast<const std::byte*>(pointer);
  for (int device = 0; device < devices; ++device) {
    const Place& p = places_[static_cast<std::size_t>(device + 1)];
    if (at >= p.base && at < p.base + device_span) return device;
  }
  return gpu::host;
}

std::byte* Memory::view(const void* pointer) const {
  const auto* const at = static_cast<const std::byte*>(pointer);
  const int device = locate(pointer);
  if (device == gpu::host) return const_cast<std::byte*>(at);
  const Place& p = places_[static_cast<std::size_t>(device + 1)];
  return p.own + (at - p.base);
}

bool Memory::is_pinned(const void* memory, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(memory);
  if (is_mapped(memory, bytes)) return true;
  std::lock_guard lock(mutex_);
  const auto& blocks = place(gpu::host).blocks;
  auto it = blocks.upper_bound(at);
  return it != blocks.begin() && at + bytes <= std::prev(it)->first + std::prev(it)->second.bytes;
}

/// Blocks keep a distance, so that work that goes beyond one is noticed.
std::byte* Memory::find_room(const Blocks& blocks, std::byte* begin, std::size_t bytes,
                             std::size_t unit) {
  bytes = rounded(bytes, unit);
  std::byte* at = begin;
  for (auto it = blocks.lower_bound(begin); it != blocks.end(); ++it) {
    if (static_cast<std::size_t>(it->first - at) >= bytes + unit) break;
    const auto end = static_cast<std::size_t>(it->first - begin) + it->second.bytes;
    at = begin + rounded(end, unit) + unit;
  }
  return at + bytes <= begin + device_bytes ? at : nullptr;
}

void* Memory::take(int number, std::size_t bytes, bool by_program, bool is_of_pool) {
  bytes = std::max<std::size_t>(bytes, 1);
  std::lock_guard lock(mutex_);
  Place& p = place(number);
  if (p.taken + bytes > p.limit || p.taken + bytes < bytes) return nullptr;
  std::byte* const memory =
      number == gpu::host ? take_pinned(bytes) : find_room(p.blocks, p.base, bytes, alignment);
  if (!memory) return nullptr;
  if (number != gpu::host) {
    spoil_file(p.file, static_cast<std::size_t>(memory - p.base), bytes);
  }
  p.blocks[memory] = {
      .bytes = bytes, .by_program = by_program, .is_of_pool = is_of_pool, .id = ++blocks_};
  p.taken += bytes;
  return memory;
}

void Memory::give(int number, void* memory, bool by_program) {
  if (!memory) return;
  std::lock_guard lock(mutex_);
  Place& p = place(number);
  auto* const at = static_cast<std::byte*>(memory);
  const auto it = p.blocks.find(at);
  if (it == p.blocks.end()) fault("a block is released that is not taken: %p", memory);
  const Block block = it->second;
  if (block.by_program != by_program || block.peer_file >= 0) {
    fault("a block is released that is another's: %p", memory);
  }
  check_idle(at, block.bytes, "released");
  if (block.shared) unshare(p, at, block);
  p.blocks.erase(it);
  p.taken -= block.bytes;
  if (number == gpu::host) {
    std::free(memory);
  } else {
    // Whole pages are given back to the system, and read as zeros.
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = static_cast<std::size_t>(at - p.base);
    const std::size_t end = begin + block.bytes;
    const std::size_t first = std::min(rounded(begin, page), end);
    const std::size_t last = std::max(end / page * page, first);
    spoil_file(p.file, begin, first - begin);
    spoil_file(p.file, last, end - last);
    if (first < last) {
      ::fallocate(p.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                  static_cast<off_t>(last - first));
    }
  }
}

void Memory::check_idle(const std::byte* memory, std::size_t bytes, const char* done) const {
  uses_.overlapping(memory, bytes, [&](const Access&) {
    fault("memory is %s while it is in use: %p, %zu bytes", done, static_cast<const void*>(memory),
          bytes);
  });
}

void Memory::set_limit(int number, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  place(number).limit = bytes;
}

std::size_t Memory::held(int number) {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [begin, block] : place(number).blocks) {
    if (!block.by_program && block.peer_file < 0) bytes += block.bytes;
  }
  return bytes;
}

void Memory::check(int device, const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const auto* const at = static_cast<const std::byte*>(memory);
  std::lock_guard lock(mutex_);
  const auto& blocks = place(device).blocks;
  auto it = blocks.upper_bound(at);
  if (it != blocks.begin()) {
    --it;
    if (at + bytes <= it->first + it->second.bytes) return;
  }
  fault("%zu bytes at %p do not lie in a block of device %d", bytes, memory, device);
}

void Memory::check_joint(int device, const void* memory, std::size_t bytes) {
  if (locate(memory) != gpu::host) return check(device, memory, bytes);
  if (!is_pinned(memory, bytes)) fault("%zu bytes at %p are not pinned", bytes, memory);
}

void Memory::begin(const void* queue, std::uint64_t event, const std::vector<Access>& accesses) {
  std::lock_guard lock(mutex_);
  for (const Access& access : accesses) {
    if (access.writes && is_lent(access.memory)) {
      fault("work writes to a block of another program: %p, %zu bytes",
            static_cast<const void*>(access.memory), access.bytes);
    }
    const auto compare = [&](const Access& use) {
      if (race(access, use)) {
        fault("two queues race for %p, %zu bytes", static_cast<const void*>(access.memory),
              access.bytes);
      }
    };
    uses_.overlapping(access.memory, access.bytes, compare, queue);
  }
  for (const Access& access : accesses) {
    lock_use(access);
    uses_.add(queue, locate(access.memory), event, access);
  }
}

void Memory::end(const void* queue, std::uint64_t event) {
  std::lock_guard lock(mutex_);
  for (const Access& access : uses_.end(queue, event)) unlock_use(access);
}

void Memory::check_program(const Access& access) {
  std::lock_guard lock(mutex_);
  uses_.overlapping(access.memory, access.bytes, [&](const Access& use) {
    if (!race(access, use)) return;
    fault("the program copies %p, %zu bytes, while mpress uses it",
          static_cast<const void*>(access.memory), access.bytes);
  });
  if (is_used_elsewhere(access)) {
    fault("the program copies %p, %zu bytes, while another process uses it",
          static_cast<const void*>(access.memory), access.bytes);
  }
}

void Memory::check_end() {
  if (uses_.count() > 0)
    fault("%zu pieces of memory are in use by work nobody saw done", uses_.count());
  const char* const variable = std::getenv("SIMULATED_GPU_LEAKS");
  const std::string_view leaks = variable ? variable : "";
  if (leaks != "abort" && leaks != "shared") return;
  for (int number = gpu::host; number < devices; ++number) {
    const std::size_t bytes = leaks == "abort" ? held(number) : 0;
    if (bytes > 0) {
      fault("%zu bytes of %s were never released", bytes,
            number == gpu::host ? "pinned memory" : "a device");
    }
    for (const auto& [begin, block] : place(number).blocks) {
      if (block.peer_file >= 0) {
        fault("%zu bytes of another process were never closed", block.bytes);
      }
      if (block.shared && !block.by_program) {
        fault("%zu shared bytes were never released", block.bytes);
      }
    }
  }
  if (!mapped_.empty()) fault("%zu pieces of host memory are still mapped", mapped_.size());
}

}  // namespace mpress::simulated
