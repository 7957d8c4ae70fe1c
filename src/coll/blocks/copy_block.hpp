// Copies of blocks within this process.
#pragma once

#include "coll/blocks/block_map.hpp"
#include "core/staging.hpp"

namespace mpress::engine {

struct Runtime;

/// Copies a block to where one of the same signature lies, in memory of devices or of the host,
/// with gaps or without, and waits for it. A copy that a device makes at once may be left under way
/// in `under_way`, where that is given.
Status copy_block(Runtime& runtime, const BlockData& from, const BlockData& to,
                  CopyUnderWay* under_way = nullptr);

}  // namespace mpress::engine
