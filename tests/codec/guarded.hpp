#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

// Memory that ends where a page without access begins: a step beyond it is a crash.
class Guarded {
 public:
  explicit Guarded(std::size_t most) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    room_ = (most + page - 1) / page * page + page;
    void* p =
        mmap(nullptr, room_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    base_ = static_cast<unsigned char*>(p);
    if (mprotect(base_ + room_, page, PROT_NONE) != 0) std::abort();
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // The last `bytes` of it.
  unsigned char* last(std::size_t bytes) { return base_ + room_ - bytes; }

 private:
  unsigned char* base_;
  std::size_t room_;
};
