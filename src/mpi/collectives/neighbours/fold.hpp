// Combining what neighbours sent, by MPI's own operator.
#pragma once

#include <cstddef>

#include "codec/float_environment.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

class Job;

/// `count` items of a type, packed: without gaps. Functions return error codes of MPI's, and raise
/// nothing. One thread at a time.
class Fold {
 public:
  /// `type` and `op` outlive it; `programs`: the type as the program's operator gets it, which has
  /// the same layout. Where its functions are to work on types with gaps, room for two
  /// vectors as the type has them is taken from the job's pool.
  Fold(Job& job, MPI_Count count, MPI_Datatype type, MPI_Datatype programs, MPI_Op op);

  /// Bytes of a vector.
  std::size_t bytes() const { return bytes_; }
  /// As MPI describes a packed vector in a message.
  MPI_Count packed_count() const { return packed_count_; }
  MPI_Datatype packed_type() const { return packed_type_; }

  /// Operators of MPI's own round and flush so from now on, whichever thread combines.
  void round_as(FloatModes modes) { modes_ = modes; }

  /// into = from op into.
  int combine(const void* from, void* into);

 private:
  int reduce(const void* from, void* into) const;

  Job& job_;
  const MPI_Count count_;
  const MPI_Datatype type_;
  const MPI_Datatype programs_;
  const MPI_Op op_;
  FloatModes modes_ = FloatModes::of_thread();
  std::size_t bytes_ = 0;
  MPI_Count packed_count_ = 0;
  MPI_Datatype packed_type_ = MPI_DATATYPE_NULL;
  bool has_gaps_ = false;
  std::size_t first_ = 0;  ///< from the begin of a room to the address of a vector there
  std::size_t room_ = 0;
  memory::Buffer laid_out_;
};

}  // namespace mpress::engine
