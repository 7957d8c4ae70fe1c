// Copies of blocks within this process.
#pragma once

#include "coll/blocks/block_map.hpp"
#include "core/staging.hpp"

namespace mpress::engine {

struct Runtime;

/// Bytes without gaps; `data` null: there is no memory for them.
BlockData bytes_at(std::byte* data, std::size_t bytes);

/// The elements of a block without gaps, at an address.
BlockData packed_at(std::byte* at, const BlockData& block);

/// Copies a block to where one of the same signature lies, in memory of devices or of the host,
/// with gaps or without, and waits for it. A copy that a device makes at once may be left under way
/// in `under_way`, where that is given.
Status copy_block(Runtime& runtime, const BlockData& from, const BlockData& to,
                  CopyUnderWay* under_way = nullptr);

}  // namespace mpress::engine
