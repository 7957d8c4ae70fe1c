#include "mpi/objects/relayout.hpp"

#include <atomic>

#include "mpi/calls/counted.hpp"
#include "mpi/objects/self_comm.hpp"

namespace mpress::mpi {

int relayout(const void* from, const TypedCount& from_layout, void* to,
             const TypedCount& to_layout) {
  static std::atomic<unsigned> next_tag{0};
  const int tag = static_cast<int>(next_tag.fetch_add(1, std::memory_order_relaxed) % 32768);
  return counted::Sendrecv(from, {from_layout.count, from_layout.type, 0, tag}, to,
                           {to_layout.count, to_layout.type, 0, tag}, self_comm(),
                           MPI_STATUS_IGNORE);
}

}  // namespace mpress::mpi
