// Finding which ranks share a host, at the start of a job.
#pragma once

#include "core/hosts.hpp"
#include "link/host_memory.hpp"

namespace mpress::engine {

/// Collective over MPI_COMM_WORLD; blocks. `ranks_a_host`: 0; or, for tests, how many consecutive
/// ranks count as a host, whatever the machine.
void open_hosts(Hosts& hosts, const link::HostMemory::Nonce& nonce, int ranks_a_host);

}  // namespace mpress::engine
