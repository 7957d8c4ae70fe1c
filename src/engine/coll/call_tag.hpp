// The tag of a call's blocks, while the call is under way.
#pragma once

#include <cstdint>

#include "mpi/job/context.hpp"

namespace mpress::engine {

/// A persistent call has its tag for its lifetime, and whoever made it keeps it; others take theirs
/// at each start. `context` outlives it.
class CallTag {
 public:
  CallTag(Context& context, std::uint32_t tag)
      : context_(context), tag_(tag), is_kept_(tag >= CallOrder::call_tags) {}

  /// False while another call has it.
  bool take() { return is_kept_ || context_.order().take(tag_); }
  void give() {
    if (!is_kept_) context_.order().give(tag_);
  }

  /// As MPI gets it.
  int of_blocks() const { return context_.first_block_tag() + static_cast<int>(tag_); }

 private:
  Context& context_;
  const std::uint32_t tag_;
  const bool is_kept_;
};

}  // namespace mpress::engine
