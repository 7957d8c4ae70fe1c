#include "message/cached_decision.hpp"

#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

constinit thread_local std::array<CachedDecision, 1 << CachedDecision::kept_bits>
    CachedDecision::of_thread_{};

void CachedDecision::keep(const Key& key, const Decision& decision, std::uint64_t changes) {
  if (decision.item_bytes > UINT32_MAX) return;
  const bool is_of_range = decision.least < decision.most;
  CachedDecision& one = at(key, is_of_range ? size_class(key.count) : key.count);
  one.least_ = decision.least;
  one.most_ = decision.most;
  one.type_ = key.type;
  one.comm_ = key.comm;
  one.changes_ = changes;
  one.row_ = decision.row;
  one.item_bytes_ = static_cast<std::uint32_t>(decision.item_bytes);
  one.peer_ = key.peer;
  one.left_ = decision.left;
  one.op_ = key.op;
  one.is_of_host_ = decision.is_of_host;
}

bool CachedDecision::use() {
  if (is_of_host_ && gpu::in_use()) return false;
  if (left_ != always) --left_;
  return true;
}

}  // namespace mpress::engine
