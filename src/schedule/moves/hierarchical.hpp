// Algorithms that know who shares a host: links within are another kind than links between.
//
// n ranks on h hosts, at most m on one, s segments, radices b between hosts and w within;
// B = ceil(log_b h), W = ceil(log_w m). Busiest: the blocks that the busiest rank sends, or
// receives, whichever are more. Between: the transfers of one block from host to host, in all.
// c(n, k): children of a k-nomial tree's root (tree.hpp). z(v, k): the digits of v, of base k, that
// are not zero.
//
// | hierarchical_...  | rounds                     | busiest             | in all    | between   |
// |-------------------|----------------------------|---------------------|-----------|-----------|
// | bcast             | (s-1) max(B, W) + B + W    | s (c(h,b) + c(m,w)) | s (n - 1) | s (h - 1) |
// |                   |                            | (1)                 |           |           |
// | two_shot_bcast    | t + (h > 2) + (v > 1)      | (5)                 | s (n - 1) | s (h - 1) |
// | scatter, gather   | B + W                      | n - 1               | (2)       | (2)       |
// | allgather         | h, but h - 1 for m = 1     | n - 1 (3)           | n (n - 1) | n (h - 1) |
// | alltoall          | ceil((n-1) / window)       | n - 1               | n (n - 1) | (4)       |
//
// (1) With as many ranks on each host. Else the most, over hosts, of s times the children that the
//     host's first rank has in both trees.
// (2) Sums over all ranks but the root: z(host, b) + z(place, w) in all, and z(host, b) between,
//     where the root's host is host 0, and the first rank of a host is place 0. With b >= h, a
//     block goes between hosts once.
// (3) With as many ranks on each host. Else, if that is more, the most over hosts of i ranks of
//     h - 1 + (i - 1) (1 + ceil((n - i) / i)).
// (4) Each block of a pair on two hosts, once.
// (5) t = ceil(s / (h-1)), and v ranks at most on a host that is not the root's; t = s for h = 1.
//     The root has s m of its own host's m ranks, s (m-1) where that is alone; the first rank of
//     another host has s (m-1), and h - 2 times the segments that the root sends it, t at most.
//
// task.size has to be hosts.ranks() (else std::invalid_argument).
#pragma once

#include "schedule/hosts.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Of the k-nomial trees; each at least 2.
struct Radices {
  int between = 2;
  int within = 2;
};

/// A k-nomial tree over the first ranks of the hosts, and one within each host. While a segment
/// goes down the second, the next one goes down the first. The root counts as its host's first.
/// With `radices.within` of at least the ranks of a host, all of them have a segment from the
/// first, in one round: for links on which many read what was written once. Each segment reaches
/// each other host once. As "two-level" broadcasts of MPICH, Open MPI's han.
Schedule hierarchical_bcast(const Task& task, int rank, const Hosts& hosts, Radices radices = {});

/// The root sends each segment to the first rank of one other host, by turns, and that one in the
/// next round to those of all others; each first rank passes on in one round to its host what it
/// got in the one before. So what bounds it is that each host gets everything once, whatever the
/// number of hosts: for large messages. Best with a multiple of h - 1 segments. two_shot_bcast
/// (scatter_allgather.hpp) with hosts in place of ranks.
Schedule hierarchical_two_shot_bcast(const Task& task, int rank, const Hosts& hosts);

/// The same trees, for short blocks: a host's blocks come to its first rank as one message. With
/// `radices.between` of at least the hosts' count, each block goes from host to host once. For long
/// blocks linear_scatter is as good: it, too, moves each block between hosts once, nothing is
/// forwarded, and what bounds any scatter is the root's link.
Schedule hierarchical_scatter(const Task& task, int rank, const Hosts& hosts, Radices radices = {});

/// The scatter backwards.
Schedule hierarchical_gather(const Task& task, int rank, const Hosts& hosts, Radices radices = {});

/// Each rank sends its block to one rank on each other host, another host each round; whoever has
/// got blocks in a round sends them in the next to all others of its host (which can read what was
/// written once), as it does with its own in the first. A host's ranks take what comes by turns: no
/// two of them differ by more than one block. As the multi-leader and multi-lane all-gathers:
/// J. L. Traeff, S. Hunold, "Decomposing MPI Collectives for Exploiting Multi-lane Communication",
/// CLUSTER 2020.
Schedule hierarchical_allgather(const Task& task, int rank, const Hosts& hosts);

/// Straight from origin to destination; in each step a rank sends to one and receives from one.
/// With as many ranks on each host, all of a step's pairs share a host or none does, steps within
/// hosts are spread evenly over the others, and steps that follow one another go to different
/// hosts. Else ranks go round in the order of hosts, and small distances, most of them within a
/// host, alternate with large ones. So both kinds of links work all the time, if rounds overlap or
/// `window` steps make one round. `window`: at least 1.
Schedule hierarchical_alltoall(const Task& task, int rank, const Hosts& hosts, int window = 1);

}  // namespace mpress::schedule
