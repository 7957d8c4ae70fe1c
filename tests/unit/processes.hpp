// Two processes that use GPUs, and a line between them.
#pragma once

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "check.hpp"
#include "gpu/loaded_gpu.hpp"

namespace mpress {

/// To the other process.
struct Line {
  int socket;

  template <class T>
  void send(const T& value) const {
    CHECK(::send(socket, &value, sizeof value, MSG_NOSIGNAL) == sizeof value);
  }

  /// False where the other has ended.
  template <class T>
  bool receive(T& value) const {
    return ::recv(socket, &value, sizeof value, MSG_WAITALL) == sizeof value;
  }

  void tell() const { send('.'); }
  void wait() const {
    char dot;
    receive(dot);
  }
};

/// Memory of the program's, where `library` simulates devices.
inline std::byte* program_memory(const char* library, int device, std::size_t size) {
  using Take = void* (*)(int, std::size_t);
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  CHECK(loaded);
  const auto take = reinterpret_cast<Take>(::dlsym(loaded, "sim_malloc"));
  CHECK(take != nullptr);
  return static_cast<std::byte*>(take(device, size));
}

using Role = std::function<void(const Line&)>;

struct Child {
  pid_t process;
  int error;  ///< what it says there
};

inline Child start(const char* library, const Line& line, const Line& other, const Role& role) {
  int said[2];
  CHECK(::pipe(said) == 0);
  const pid_t process = ::fork();
  if (process != 0) {
    ::close(said[1]);
    return {process, said[0]};
  }
  ::close(other.socket);
  ::dup2(said[1], STDERR_FILENO);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  check::failures = 0;
  gpu::choose(library);
  if (gpu::gpu()) {
    role(line);
  } else {
    CHECK(!"a GPU");
  }
  std::exit(check::failures != 0);
}

/// Ends when the process does.
inline std::string last_words(const Child& child) {
  std::string text;
  char part[512];
  for (ssize_t bytes; (bytes = ::read(child.error, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(bytes));
  }
  ::close(child.error);
  return text;
}

inline int status_of(const Child& child) {
  int status = 0;
  CHECK(::waitpid(child.process, &status, 0) == child.process);
  return status;
}

/// Where a fault is expected, the process that misuses memory is ended with it; `by_owner` says
/// which.
struct Fault {
  std::string text;
  bool by_owner;
};

inline void run(const char* library, const Role& owner, const Role& opener,
                const Fault& fault = {}) {
  int sockets[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const Line lines[2] = {{sockets[0]}, {sockets[1]}};
  const Child children[2] = {start(library, lines[0], lines[1], owner),
                             start(library, lines[1], lines[0], opener)};
  for (const Line& line : lines) ::close(line.socket);
  for (int i = 0; i < 2; ++i) {
    const std::string words = last_words(children[i]);
    const int status = status_of(children[i]);
    if (fault.text.empty()) {
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      std::fputs(words.c_str(), stderr);
    } else if (fault.by_owner == (i == 0)) {
      CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
      const bool found = words.find(fault.text) != std::string::npos;
      CHECK(found);
      if (!found)
        std::fprintf(stderr, "expected: %s; got: %s\n", fault.text.c_str(), words.c_str());
    }
  }
}

}  // namespace mpress
