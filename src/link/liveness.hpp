// Do the processes of other ranks of this host still exist?
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mpress::link {

/// A process, as others of its host can ask after it.
struct ProcessId {
  std::int32_t pid = 0;
  /// Of whose process numbers that is one: those of containers mean nothing elsewhere.
  std::uint32_t space = 0;
};

/// This process's own.
ProcessId own_process();

/// False where it has ended, also where nobody has asked for its status yet. Processes of another
/// space count as alive: nobody can tell.
bool is_alive(const ProcessId& process);

/// A process of this one's space.
ProcessId process_here(std::int32_t pid);

/// Has such a process ended? Asks the system at one look of many.
bool has_ended(std::int32_t pid, std::uint64_t& looks);

}  // namespace mpress::link
