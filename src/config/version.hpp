// The release and the version of everything that travels. Kept in step with pyproject.toml.
#pragma once

namespace mpress {

inline constexpr const char* version = "0.1.0";

/// Raised whenever the frame's header or a codec's payload changes; part of the job's nonce, so
/// that ranks of different versions never mistake each other's frames.
inline constexpr int frame_version = 6;

/// Raised whenever members of a reduction would find another grid from what they tell each other.
inline constexpr int grid_version = 2;

}  // namespace mpress
