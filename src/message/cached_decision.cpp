#include "message/cached_decision.hpp"

#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

constinit thread_local std::array<CachedDecision, 1 << CachedDecision::kept_bits>
    CachedDecision::of_thread_{};

void CachedDecision::keep(const Key& key, const Kept& kept, std::uint64_t changes) {
  if (kept.item_bytes > UINT32_MAX) return;
  const bool is_of_range = kept.least < kept.most;
  CachedDecision& one = at(key, is_of_range ? size_class(key.count) : key.count);
  one.least_ = kept.least;
  one.most_ = kept.most;
  one.type_ = key.type;
  one.comm_ = key.comm;
  one.changes_ = changes;
  one.row_ = kept.row;
  one.item_bytes_ = static_cast<std::uint32_t>(kept.item_bytes);
  one.peer_ = key.peer;
  one.left_ = kept.left;
  one.op_ = key.op;
  one.is_of_host_ = kept.is_of_host;
}

bool CachedDecision::use() {
  if (is_of_host_ && gpu::in_use()) return false;
  if (left_ != always) --left_;
  return true;
}

}  // namespace mpress::engine
