// All-gathers of a neighbourhood: each rank has one block, which all of its targets get.
//
// The block goes along one dimension after another. Ranks that it passes are the prefixes of the
// offsets, with dimensions taken in some order: a tree, whose edges other than 0 are the sends. So
// the block crosses each edge once, and several targets behind it cost no more.
//
// s neighbours, C_j distinct values other than 0 of coordinate j, k ports:
//
// | gather     | rounds                               | blocks that a rank sends on a torus |
// |------------|--------------------------------------|-------------------------------------|
// | direct     | ceil(distinct offsets / k)           | distinct offsets                    |
// | combining  | sum of ceil(C_j / k)                 | edges other than 0 of the tree      |
//
// Moore neighbourhoods have as many edges as offsets, so combining costs no volume there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Blocks have the numbers of their origins; each comes to a rank at most once, whatever offsets
/// lead there. What a rank has for itself does not travel.
class GatherTree {
 public:
  /// Dimensions in the order that has the fewest edges: of up to four all are tried, else those
  /// with few values come first. The neighbourhood outlives the tree. Throws std::invalid_argument
  /// where `ports` is below 1.
  GatherTree(const Neighbourhood& neighbourhood, int ports);
  /// `order` has each dimension once.
  GatherTree(const Neighbourhood& neighbourhood, int ports, std::span<const int> order);

  int rounds() const { return rounds_; }
  /// Messages, and blocks in these, that a rank sends on a torus.
  std::size_t messages() const { return exchanges_.size(); }
  std::size_t blocks() const { return edges_; }

  /// What one rank of the grid does.
  Schedule schedule(int rank) const;

 private:
  /// A prefix of offsets, of a length that is its level.
  struct Node {
    std::uint32_t parent;
    int step;  ///< the last coordinate of the prefix
  };
  /// Sends along the edges of one step from one level to the next.
  struct Exchange {
    int level;  ///< of the nodes that get the block
    int step;
    int round;
    std::vector<std::uint32_t> nodes;
  };

  void build(std::span<const int> order);
  void plan_exchanges(int ports);

  const Neighbourhood* neighbourhood_;
  std::vector<int> order_;
  std::vector<std::vector<Node>> levels_;  ///< the first is the root
  std::vector<Exchange> exchanges_;
  std::size_t edges_ = 0;
  int rounds_ = 0;
};

/// Straight to each target, in the order of the list, `ports` distinct offsets a round.
Schedule direct_gather(const Neighbourhood& neighbourhood, int rank, int ports);

}  // namespace mpress::schedule
