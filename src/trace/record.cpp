#include "trace/record.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <span>

#include "trace/message.hpp"

namespace mpress::trace {
namespace {

constexpr std::uint32_t row_capacity = 1u << 15;  // a sparse file: untouched rows cost nothing
constexpr std::size_t record_bytes = sizeof(RecordHeader) + row_capacity * sizeof(Row);

std::uint64_t key_bits(const Key& key) {
  return static_cast<std::uint64_t>(key.called.op) | std::uint64_t{key.is_on_device} << 7 |
         static_cast<std::uint64_t>(key.codec) << 8 |
         static_cast<std::uint64_t>(key.fallback) << 12 |
         static_cast<std::uint64_t>(key.reason) << 16 |
         static_cast<std::uint64_t>(key.called.algorithm) << 20 |
         static_cast<std::uint64_t>(key.direction) << 24 |
         static_cast<std::uint64_t>(key.way) << 28 | std::uint64_t{1} << 31 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.peer)) << 32;
}

void* map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return MAP_FAILED;
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, record_bytes) == 0) {
    memory = ::mmap(nullptr, record_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  return memory;
}

}  // namespace

bool Record::open(const std::string& path) {
  void* memory = path.empty() ? MAP_FAILED : map_file(path);
  const bool kept = memory != MAP_FAILED;
  if (!kept) {
    memory = ::mmap(nullptr, record_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (memory == MAP_FAILED) std::abort();
  auto* header = new (memory) RecordHeader{};
  header->header_bytes = sizeof(RecordHeader);
  header->row_bytes = sizeof(Row);
  header->row_capacity = row_capacity;
  header->pid = static_cast<std::uint32_t>(::getpid());
  ::gethostname(header->host, sizeof header->host - 1);
  std::memcpy(header->magic, "mpressR1", 8);
  std::strcpy(header->left[left_capacity - 1].why, "reasons for which the record has no room");
  rows_ = reinterpret_cast<Row*>(static_cast<char*>(memory) + sizeof(RecordHeader));
  header_ = header;
  keep_what_is_said(header->said);
  return kept;
}

Row& Record::row(const Key& key) {
  const std::uint64_t bits = key_bits(key);
  // The row this thread touched last for this operation is most often the one it wants again.
  thread_local Row* recent[3][static_cast<std::size_t>(Op::count_)] = {};
  Row*& cached =
      recent[static_cast<std::size_t>(key.direction)][static_cast<std::size_t>(key.called.op)];
  if (cached && cached->key.load(std::memory_order_relaxed) == bits) return *cached;
  std::uint64_t at = bits * 0x9E3779B97F4A7C15u >> 40;
  for (std::uint32_t probe = 0; probe + 1 < row_capacity; ++probe, ++at) {
    Row& row = rows_[at % (row_capacity - 1)];
    std::uint64_t found = row.key.load(std::memory_order_relaxed);
    if (found == 0 && row.key.compare_exchange_strong(found, bits)) found = bits;
    if (found == bits) {
      cached = &row;
      return row;
    }
  }
  return rows_[row_capacity - 1];
}

void Record::count_left(Op op, const char* why) {
  const auto key = static_cast<std::uint64_t>(op) | reinterpret_cast<std::uintptr_t>(why) << 8;
  // As row() does: calls of an operation have one reason again and again.
  thread_local LeftCalls* recent[static_cast<std::size_t>(Op::count_)] = {};
  LeftCalls*& cached = recent[static_cast<std::size_t>(op)];
  if (!cached || cached->key.load(std::memory_order_relaxed) != key) cached = &left(key, why);
  add(cached->calls, 1);
}

LeftCalls& Record::left(std::uint64_t key, const char* why) {
  for (LeftCalls& calls : std::span(header_->left).first(left_capacity - 1)) {
    std::uint64_t found = calls.key.load(std::memory_order_relaxed);
    if (found == 0 && calls.key.compare_exchange_strong(found, key)) {
      std::strncpy(calls.why, why, sizeof calls.why - 1);
      return calls;
    }
    if (found == key) return calls;
  }
  return header_->left[left_capacity - 1];
}

/// Bits of doubles that are not below 0 are in their order; NaNs are beyond.
void raise_error(std::atomic<std::uint64_t>& error, double value) {
  constexpr auto largest = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max());
  constexpr auto no_sign = std::uint64_t{INT64_MAX};
  const auto bits = std::min(std::bit_cast<std::uint64_t>(value) & no_sign, largest);
  std::uint64_t known = error.load(std::memory_order_relaxed);
  while (known < bits && !error.compare_exchange_weak(known, bits, std::memory_order_relaxed)) {
  }
}

std::uint64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace mpress::trace
