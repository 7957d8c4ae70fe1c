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

/// A rank of a host, as the others of that ask after it.
struct RankProcess {
  int rank;  ///< in MPI_COMM_WORLD
  ProcessId process;
};

/// Has a process ended? For who looks again and again: asks the system at one look of many.
bool has_ended(const ProcessId& process, std::uint64_t& looks);

}  // namespace mpress::link
