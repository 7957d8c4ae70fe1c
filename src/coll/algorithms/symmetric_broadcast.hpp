// A long broadcast by kernels of all members: who passes on which part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/call.hpp"

namespace mpress::engine {

/// Kernels move words, whatever they mean.
inline constexpr ElementType broadcast_word = ElementType::f32;
inline constexpr std::size_t broadcast_word_bytes = 4;

/// Words at which the parts begin that members pass on, about even, in whole units; the root's is
/// empty.
std::vector<std::int64_t> broadcast_parts(const AgreedCall& call);

}  // namespace mpress::engine
