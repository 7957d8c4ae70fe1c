#include "link/liveness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace mpress::link {
namespace {

/// Has it ended, while its parent has not asked for its status?
bool is_zombie(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // a name may hold anything
  return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

std::uint32_t own_space() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? static_cast<std::uint32_t>(status.st_ino) : 0;
}

}  // namespace

ProcessId own_process() { return {static_cast<std::int32_t>(::getpid()), own_space()}; }

bool is_alive(const ProcessId& process) {
  if (process.pid <= 0 || process.space != own_space()) return true;
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  return !is_zombie(process.pid);
}

bool has_ended(const ProcessId& process, std::uint64_t& looks) {
  constexpr std::uint64_t looks_a_question = 1 << 16;
  return ++looks % looks_a_question == 0 && !is_alive(process);
}

}  // namespace mpress::link
