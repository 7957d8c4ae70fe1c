#include "engine/p2p/standing.hpp"

#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

constinit thread_local std::array<Standing, 1 << Standing::kept_bits> Standing::of_thread_{};

void Standing::keep(const Kind& kind, const Decision& decision, std::uint64_t changes) {
  Standing& one = at(kind);
  one.count_ = kind.count;
  one.type_ = mpi::handle_bits(kind.type);
  one.comm_ = mpi::handle_bits(kind.comm);
  one.changes_ = changes;
  one.bytes_ = decision.bytes;
  one.row_ = decision.row;
  one.peer_ = kind.peer;
  one.left_ = decision.left;
  one.op_ = kind.op;
  one.on_host_alone_ = decision.on_host_alone;
}

bool Standing::use() {
  if (on_host_alone_ && gpu::in_use()) return false;
  if (left_ != always) --left_;
  return true;
}

}  // namespace mpress::engine
