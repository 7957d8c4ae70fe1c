#include "trace/message.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace mpress::trace {
namespace {

constexpr int timeout_ms = 1000;

/// Bytes that were written to `file` and that nobody has read yet; 0 where this cannot be told.
int unread_bytes(int file) {
  struct stat info;
  if (::fstat(file, &info) != 0) return 0;
  int bytes = 0;
  if (S_ISFIFO(info.st_mode) && ::ioctl(file, FIONREAD, &bytes) == 0) return bytes;
  if (S_ISSOCK(info.st_mode) && ::ioctl(file, SIOCOUTQ, &bytes) == 0) return bytes;
  return 0;
}

std::mutex keeping;
std::span<char> kept;  ///< what is left of the room

void keep(const std::string& line) {
  std::lock_guard lock(keeping);
  if (line.size() >= kept.size()) return;  // the last byte stays 0
  std::memcpy(kept.data(), line.data(), line.size());
  kept = kept.subspan(line.size());
}

}  // namespace

void keep_what_is_said(std::span<char> room) {
  std::lock_guard lock(keeping);
  kept = room;
}

void say(const std::string& text) {
  std::fflush(stderr);
  keep(text + "\n");
  const std::string line = "mpress: " + text + "\n";
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
    if (n > 0) written += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) return;
  }
  for (int waited = 0; waited < timeout_ms && unread_bytes(STDERR_FILENO) > 0; ++waited) {
    const timespec millisecond{0, 1000000};
    ::nanosleep(&millisecond, nullptr);
  }
}

}  // namespace mpress::trace
