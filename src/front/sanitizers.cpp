// Programs built with a sanitizer: functions that its runtime calls before anything else.
//
// AddressSanitizer's, where it is a shared library, insists on being the first library of the
// process, so that all others find its malloc() and its interceptors. A preloaded library comes
// before it; but this one defines calls of MPI's alone, and so hides nothing of the runtime's.
//
// The functions are called before constructors have run, and before interceptors work: nothing here
// may call what a runtime intercepts.

#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace {

#define MPRESS_NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

constexpr char option[] = "verify_asan_link_order=0";

bool is_asked = false;

// Through volatile pointers: of plain loops compilers make calls of strlen() and the like.

MPRESS_NOT_SANITIZED bool begins(const volatile char* text, const char* with) {
  while (*with && *text == *with) ++text, ++with;
  return !*with;
}

MPRESS_NOT_SANITIZED bool contains(const volatile char* text, const volatile char* end,
                                   const char* part) {
  for (; end ? text < end : *text != 0; ++text) {
    if (begins(text, part)) return true;
  }
  return false;
}

MPRESS_NOT_SANITIZED bool contains(const char* text, const char* part) {
  return contains(text, nullptr, part);
}

/// The first two libraries of the process, where the runtime is the second.
struct Order {
  const char* front = nullptr;  ///< this library
  const char* runtime = nullptr;
};

MPRESS_NOT_SANITIZED int look_at_library(dl_phdr_info* info, std::size_t, void* found) {
  Order& order = *static_cast<Order*>(found);
  const char* const name = info->dlpi_name;
  const bool is_program = !name || !*name;
  if (is_program || begins(name, "linux-vdso")) return 0;
  constexpr int enough = 1;
  if (order.front) {
    if (contains(name, "libasan.so") || contains(name, "libclang_rt.asan")) order.runtime = name;
    return enough;
  }
  const auto own = reinterpret_cast<std::uintptr_t>(&is_asked);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && own >= begin && own < begin + part.p_memsz) order.front = name;
  }
  return order.front ? 0 : enough;
}

MPRESS_NOT_SANITIZED Order find_order() {
  Order order;
  ::dl_iterate_phdr(look_at_library, &order);
  return order;
}

/// The C library does not know the environment yet.
MPRESS_NOT_SANITIZED bool environment_has_option() {
  static char text[1 << 17];
  const long file = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
  std::size_t size = 0;
  while (file >= 0 && size < sizeof text) {
    const long read = ::syscall(SYS_read, file, text + size, sizeof text - size);
    if (read <= 0) break;
    size += static_cast<std::size_t>(read);
  }
  if (file >= 0) ::syscall(SYS_close, file);
  return size >= sizeof option && contains(text, text + size - sizeof option + 1, option);
}

MPRESS_NOT_SANITIZED void write_text(const char* text) {
  const volatile char* end = text;
  while (*end) ++end;
  ::syscall(SYS_write, STDERR_FILENO, text, end - text);
}

}  // namespace

#define MPRESS_HOOK extern "C" __attribute__((visibility("default"))) MPRESS_NOT_SANITIZED

/// Options that ASAN_OPTIONS and the program's own function of this name come before. Where another
/// library comes first, too, the runtime looks at the order as ever.
MPRESS_HOOK const char* __asan_default_options() {
  is_asked = true;
  return find_order().runtime ? option : "";
}

/// Called next. The program has a function of the name above itself, where that was not called.
MPRESS_HOOK const char* __lsan_default_options() {
  if (is_asked || !find_order().runtime) return "";
  if (contains(__asan_default_options(), option) || environment_has_option()) return "";
  write_text(
      "mpress: the program's own __asan_default_options() leave AddressSanitizer insisting ");
  write_text("on being loaded first: set ASAN_OPTIONS=");
  write_text(option);
  write_text("\n");
  return "";
}

#if !defined(__SANITIZE_THREAD__)
/// Of ThreadSanitizer, which does not see mpress's own atomic operations, by which threads hand on
/// what they copy. Where mpress is instrumented itself, it sees them.
MPRESS_HOOK const char* __tsan_default_suppressions() {
  return "called_from_lib:libmpress_mpich.so\n"
         "called_from_lib:libmpress_openmpi.so\n"
         "called_from_lib:libmpress_abi.so\n";
}
#endif
