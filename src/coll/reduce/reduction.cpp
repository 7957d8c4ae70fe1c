#include "coll/reduce/reduction.hpp"

#include <algorithm>

#include "core/plain_layout.hpp"

namespace mpress::engine {

Spec spec_for(const Reduction& reduction, const Spec& agreed, bool is_reproducible) {
  const bool bears_loss =
      reduction.how != codec::Combine::prod &&
      (!is_reproducible || (agreed.codec == Codec::szp && reduction.how == codec::Combine::sum));
  return agreed.lossy() && !bears_loss ? Spec{.codec = Codec::mpc} : agreed;
}

BlockData longest_contribution(const Reduction& reduction, const void* input,
                               std::span<const std::int64_t> begins, int rank) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    if (static_cast<int>(i) != rank) longest = std::max(longest, begins[i + 1] - begins[i]);
  }
  return {const_cast<void*>(input), longest, plain_layout(reduction.type),
          static_cast<std::size_t>(longest) * reduction.width()};
}

}  // namespace mpress::engine
