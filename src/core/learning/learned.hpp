// What runs learn of links, kept for the next ones: a file beside the profile.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "policy/profile.hpp"

namespace mpress::engine {

struct Runtime;

/// Rates in bytes a second, by kind of peer; 0: not known.
using Rates = std::array<std::uint64_t, policy::peer_count>;

/// What an earlier run of this MPI, transport and number of ranks a host learned on this hardware;
/// zeros where there is none, or where MPRESS_PROFILE is off.
Rates read_learned(const Runtime& runtime);

/// Keeps what this process has learned. It is only a head start: where it cannot be kept, the next
/// run measures.
void keep_learned(const Runtime& runtime);

/// The rates for the report; of links by MPI, where `by_messages`.
std::string describe_learned(const Runtime& runtime, bool by_messages);

}  // namespace mpress::engine
