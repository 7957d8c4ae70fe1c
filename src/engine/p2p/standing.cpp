#include "engine/p2p/standing.hpp"

#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

constinit thread_local std::array<Standing, 1 << Standing::kept_bits> Standing::of_thread_{};

void Standing::keep(const Kind& kind, std::uint32_t left, std::size_t bytes, trace::Row& row,
                    bool on_host_alone) {
  Standing& one = at(kind);
  one.count_ = kind.count;
  one.type_ = mpi::handle_bits(kind.type);
  one.comm_ = mpi::handle_bits(kind.comm);
  one.changes_ = now();
  one.bytes_ = bytes;
  one.row_ = &row;
  one.peer_ = kind.peer;
  one.kept_ = left;
  one.left_ = left;
  one.direction_ = kind.direction;
  one.op_ = kind.op;
  one.on_host_alone_ = on_host_alone;
}

bool Standing::use() {
  if (on_host_alone_ && gpu::in_use()) return false;
  if (left_ != always) --left_;
  return true;
}

}  // namespace mpress::engine
