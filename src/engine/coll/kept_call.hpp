// A collective call whose arguments have to outlive it, because it ends later.
#pragma once

#include "engine/coll/long_pairs.hpp"
#include "engine/coll/operands.hpp"
#include "engine/coll/staged_call.hpp"

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

  /// MPI's own non-blocking call, on another communicator with the same members. `staged` has the
  /// buffers. Returns MPI's error code.
  virtual int begin(StagedCall& staged, MPI_Comm comm, MPI_Request* request) = 0;

  /// The same on the program's communicator, without what `pairs` move; once. Raises.
  virtual int begin_rest(Job& job, StagedCall& staged, const LongPairs& pairs,
                         MPI_Request* request) = 0;

 protected:
  Operands operands_;
};

}  // namespace mpress::engine
