// Buffers that are kept for reuse: how much larger than asked for, which stay, and what happens
// when memory is short.

#include "memory/buffer_pool.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"

using namespace mpress;
using memory::Buffer;
using memory::BufferPool;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Memory that there is only so much of; what is not touched takes none.
class Counted final : public memory::BlockSource {
 public:
  explicit Counted(std::size_t limit) : limit_(limit) {}

  void* allocate(std::size_t bytes) override {
    std::lock_guard lock(mutex_);
    ++calls;
    if (bytes > limit_ - std::min(limit_, held_)) return nullptr;
    CHECK(bytes % 256 == 0);
    void* const block = std::aligned_alloc(256, bytes);
    blocks_[block] = bytes;
    held_ += bytes;
    return block;
  }
  void release(void* block) override {
    std::lock_guard lock(mutex_);
    CHECK(blocks_.contains(block));
    held_ -= blocks_[block];
    blocks_.erase(block);
    std::free(block);
  }
  std::size_t held() {
    std::lock_guard lock(mutex_);
    return held_;
  }

  std::atomic<int> calls{0};

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> blocks_;
  std::size_t limit_;
  std::size_t held_ = 0;
};

void sizes() {
  Counted source(SIZE_MAX);
  BufferPool pool(0, source);
  std::vector<std::size_t> asked = {0, 1, 4095, 4096, 4097, 256 * mib, 256 * mib + 1};
  for (unsigned power = 12; power < 31; ++power) {
    for (std::size_t part = 0; part < 8; ++part) {
      const std::size_t at = (std::size_t{1} << power) + part * (std::size_t{1} << (power - 3));
      for (const std::size_t bytes : {at - 1, at, at + 1}) asked.push_back(bytes);
    }
  }
  for (const std::size_t bytes : asked) {
    const Buffer buffer = pool.take(bytes);
    CHECK(buffer && buffer.capacity() >= bytes && buffer.capacity() == source.held());
    CHECK(buffer.capacity() <= std::max<std::size_t>(4096, bytes + bytes / 8));
    CHECK(pool.take(buffer.capacity()).capacity() == buffer.capacity());
  }
  CHECK(source.held() == 0);
  CHECK(pool.take(256 * mib).capacity() == 256 * mib);
  CHECK(!pool.take(SIZE_MAX).data() && !pool.take(SIZE_MAX / 2 + 2).data());
}

void reuse() {
  Counted source(SIZE_MAX);
  BufferPool pool(10 * mib, source);
  Buffer first = pool.take(3 * mib), second = pool.take(3 * mib);
  CHECK(first && second && first.data() != second.data());
  std::byte* const data = first.data();
  Buffer moved = std::move(first);
  CHECK(!first && moved.data() == data);
  moved.reset();
  CHECK(source.held() == 6 * mib);
  CHECK(pool.take(3 * mib - 1000).data() == data);
  CHECK(source.calls == 2);
  // What has not been used for the longest time goes, and what is used always stays.
  second.reset();
  for (std::size_t bytes = mib; bytes < 2 * mib; bytes += mib / 8) {
    CHECK(pool.take(3 * mib).data());
    pool.take(bytes);
    CHECK(source.held() <= 10 * mib);
  }
  source.calls = 0;
  CHECK(pool.take(3 * mib).data() && source.calls == 0);
  pool.take(11 * mib);  // more than it may keep
  CHECK(source.held() <= 10 * mib);
  CHECK(pool.take(3 * mib).data() && source.calls == 1);
}

void shortage() {
  Counted source(8 * mib);
  BufferPool pool(8 * mib, source);
  CHECK(!pool.take(9 * mib).data());
  for (std::size_t bytes : {1 * mib, 2 * mib, 3 * mib}) pool.take(bytes);
  CHECK(source.held() == 6 * mib);
  const Buffer all = pool.take(8 * mib);  // in place of what lies idle
  CHECK(all && source.held() == 8 * mib);
  CHECK(!pool.take(1).data());
}

void threads() {
  Counted source(64 * mib);
  BufferPool pool(4 * mib, source);
  std::atomic<int> overlaps{0};
  const auto work = [&](unsigned char mark) {
    std::mt19937 random(mark);
    for (int i = 0; i < 300; ++i) {
      const std::size_t bytes = 1 + random() % mib;
      const Buffer buffer = pool.take(bytes);
      if (!buffer) continue;  // others have it all
      std::memset(buffer.data(), mark, bytes);
      std::this_thread::yield();
      for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
        overlaps += buffer.data()[at] != std::byte{mark};
      }
    }
  };
  std::vector<std::thread> all;
  for (unsigned char mark = 1; mark <= 4; ++mark) all.emplace_back(work, mark);
  for (std::thread& thread : all) thread.join();
  CHECK(overlaps == 0 && source.held() <= 4 * mib);
}

}  // namespace

int main() {
  sizes();
  reuse();
  shortage();
  threads();
  return check::failures != 0;
}
