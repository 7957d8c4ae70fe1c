// What is known of memory without asking anybody.

#include "memory/kind.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "check.hpp"

using mpress::memory::is_own;

namespace {

char data[100000];
const char text[] = "constants, too";

void the_program_s_memory_is_told_from_other() {
  CHECK(is_own(data) && is_own(data + sizeof data - 1) && is_own(text));
  CHECK(is_own(reinterpret_cast<const void*>(&the_program_s_memory_is_told_from_other)));
  CHECK(!is_own(nullptr) && !is_own(reinterpret_cast<const void*>(8)));
  const char on_the_stack = 0;
  CHECK(!is_own(&on_the_stack));
  CHECK(!is_own(reinterpret_cast<const void*>(&::mmap)));  // another library
  void* pages = ::mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && !is_own(pages));
  ::munmap(pages, 1 << 20);
}

int sbrk_calls = 0;

void the_heap_grows_and_is_not_touched() {
  auto* end = reinterpret_cast<char*>(::syscall(SYS_brk, nullptr));
  CHECK(is_own(end - 1) && !is_own(end));
  CHECK(::brk(end + 4096) == 0);
  CHECK(is_own(end) && is_own(end + 4095) && !is_own(end + 4096));
  CHECK(sbrk_calls == 0);
}

}  // namespace

/// In the place of the C library's, as UCX's is: there, a question for the heap's end moves it.
extern "C" void* sbrk(std::intptr_t) noexcept {
  ++sbrk_calls;
  return reinterpret_cast<void*>(-1);
}

int main() {
  std::free(std::malloc(1000));  // there is a heap
  the_program_s_memory_is_told_from_other();
  the_heap_grows_and_is_not_touched();
  return check::failures != 0;
}
