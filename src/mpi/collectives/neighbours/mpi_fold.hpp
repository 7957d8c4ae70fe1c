// Vectors of neighbours, combined by MPI_Reduce_local.
#pragma once

#include <cstddef>

#include "coll/neighbourhoods/fold.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

class Job;

class MpiFold final : public Fold {
 public:
  /// Of `count` items. `type` and `op` outlive it; `programs`: the type as the program's operator
  /// gets it, which has the same layout. Where its functions are to work on types with gaps, room
  /// for two vectors as the type has them is taken from the job's pool.
  MpiFold(Job& job, MPI_Count count, MPI_Datatype type, MPI_Datatype programs, MPI_Op op);

  Status combine(const void* from, void* into) override;

 private:
  int reduce(const void* from, void* into) const;

  Job& job_;
  const MPI_Count items_;
  const MPI_Datatype type_;
  const MPI_Datatype programs_;
  const MPI_Op op_;
  MPI_Datatype packed_type_ = MPI_DATATYPE_NULL;
  bool has_gaps_ = false;
  std::size_t first_ = 0;  ///< from the begin of a room to the address of a vector there
  std::size_t room_ = 0;
  memory::Buffer laid_out_;
};

}  // namespace mpress::engine
