// The blocks of a buffer of a call in this member, looked up as they are asked for: their lengths
// and layouts are arguments of the program's, which only the binding reads.
#pragma once

#include "coll/blocks/block_map.hpp"

namespace mpress::engine {

class BlockList {
 public:
  /// Of block `i` of those that `of` describes.
  using Lookup = BlockData (*)(const void* of, int i);

  /// Without blocks: the buffer does not count in this member.
  BlockList() = default;

  /// `of` outlives it.
  BlockList(int count, const void* of, Lookup lookup) : count_(count), of_(of), lookup_(lookup) {}

  int count() const { return count_; }
  bool empty() const { return count_ == 0; }

  /// Block `i`, without bytes where there is none.
  BlockData operator[](int i) const { return i < count_ ? lookup_(of_, i) : BlockData{}; }

 private:
  int count_ = 0;
  const void* of_ = nullptr;
  Lookup lookup_ = nullptr;
};

}  // namespace mpress::engine
