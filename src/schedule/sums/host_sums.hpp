// The first half of a reduction among several hosts: what the ranks of a host bring to a piece is
// added up there, by one of them, before it goes to the piece's owner. So each piece goes between
// hosts once a host, and not once a rank. As the multi-lane reductions of J. L. Traeff, S. Hunold,
// "Decomposing MPI Collectives for Exploiting Multi-lane Communication", CLUSTER 2020.
//
// Each rank owns one piece. Of the pieces that other hosts' ranks own, the members of a host add up
// about as many each: all of them work, and all have the link in turn.
//
// Two schedules of alltoall's blocks, one after the other; the second one's are sums, and their
// origin is who added them up. n ranks on h hosts, m on each, w at most at once:
//
// | host_sums_...  | rounds         | busiest       | in all        | between     |
// |----------------|----------------|---------------|---------------|-------------|
// | within         | ceil((m-1)/w)  | h (m - 1)     | h n (m - 1)   | 0           |
// | between        | ceil((h-1)/w)  | h - 1         | n (h - 1)     | n (h - 1)   |
//
// Among hosts of different sizes the rounds are those of the largest, and `between` is the same in
// all; what is busiest is near to it.
#pragma once

#include <vector>

#include "schedule/hosts.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Who adds up what the ranks of `host` bring to the piece of `owner`; on its own host, `owner`.
int adder_of(const Hosts& hosts, int host, int owner);

/// The owners whose pieces `rank` adds up for its host: itself, and ranks on other hosts, in the
/// order in which their sums leave.
std::vector<int> owners_of(const Hosts& hosts, int rank);

/// The ranks from which the owner of a piece has it, itself among them, ascending: those of its
/// host, and one on each other host.
std::vector<int> sources_of(const Hosts& hosts, int owner);

/// Both: `task` is an alltoall of hosts.ranks() ranks, else std::invalid_argument, as for a
/// `window` below 1.
Schedule host_sums_within(const Task& task, int rank, const Hosts& hosts, int window);
Schedule host_sums_between(const Task& task, int rank, const Hosts& hosts, int window);

}  // namespace mpress::schedule
