// The tag of a call's blocks, while the call is under way.
#pragma once

#include <cstdint>

#include "coll/team.hpp"

namespace mpress::engine {

/// A persistent call has its tag for its lifetime, and whoever made it keeps it; others take theirs
/// at each start. `team` outlives it.
class CallTag {
 public:
  CallTag(Team& team, std::uint32_t tag)
      : team_(team), tag_(tag), is_kept_(tag >= CallOrder::call_tags) {}

  /// False while another call has it.
  bool take() { return is_kept_ || team_.order().take(tag_); }
  void give() {
    if (!is_kept_) team_.order().give(tag_);
  }

  /// As MPI gets it.
  int of_blocks() const { return team_.first_block_tag() + static_cast<int>(tag_); }

 private:
  Team& team_;
  const std::uint32_t tag_;
  const bool is_kept_;
};

}  // namespace mpress::engine
