// The all-to-all of a neighbourhood in the paper's first form (EuroMPI 2015, section 5.3): ranks in
// one ring, whatever their grid, and Bruck's algorithm with the distance of a target in the ring.
//
// Rounds: the digits that any distance has, so at most those of the greatest. A list with negative
// offsets has one of nearly the number of ranks, so this suits one-sided lists. The distance of an
// offset is not the same everywhere where rows wrap, or end at a border, so ranks send different
// numbers of blocks; each finds what passes it from all origins, in O(count * ranks).
#pragma once

#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Blocks as those of Routes. Throws std::invalid_argument where `base` is below 2.
Schedule ring_alltoall(const Neighbourhood& neighbourhood, int rank, int base = 2);

}  // namespace mpress::schedule
