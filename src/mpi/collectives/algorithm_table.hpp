// Which algorithm serves collective calls of which sizes: what `mpress info --algorithms` prints.
#pragma once

#include <string>

namespace mpress::engine {

class Job;

/// The table of blocking calls of floats in MPI_COMM_WORLD whose counts all members know, from
/// memory of the host and, where a member may see GPUs, of those: members of a JSON object, which
/// docs/ways.md names. Empty where MPI serves all calls. When no call is under way.
std::string algorithm_table(Job& job);

}  // namespace mpress::engine
