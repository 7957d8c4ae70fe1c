// A collective call whose arguments have to outlive it, because it ends later.
#pragma once

#include "mpi/collectives/long_pairs.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/staging/staged_call.hpp"

namespace mpress::engine {

/// Has copies of arrays, and of datatypes, which the program may free while the call is under way.
class KeptCall {
 public:
  KeptCall() = default;
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  virtual ~KeptCall() = default;

  /// What the kept arguments tell.
  const Operands& operands() const { return operands_; }

  /// MPI's own call, on `comm`, is to move all but `pairs`; once.
  virtual void leave_out(const LongPairs& pairs, MPI_Comm comm) = 0;

  /// What MPI's own call is to move: the whole, if nothing was left out.
  const Operands& left() const { return left_; }

  /// Begins MPI's own call, or, of a persistent one, makes it: on the program's communicator, or on
  /// another with the same members. `staged` has the buffers of left(). Returns MPI's error code.
  virtual int begin(StagedCall& staged, MPI_Comm comm, MPI_Request* request) = 0;

 protected:
  Operands operands_;
  Operands left_;
};

}  // namespace mpress::engine
