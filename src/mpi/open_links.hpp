// The links to GPUs of other ranks of this host, as they are opened in MPI_Init.
#pragma once

#include <cstddef>

namespace mpress::engine {

class Job;

/// Bytes of the shortest messages that go by links between devices: all that can, where one is
/// chosen.
std::size_t least_by_links(const Job& job);

/// Collective over MPI_COMM_WORLD. Once chunks are open.
void open_links(Job& job);

}  // namespace mpress::engine
