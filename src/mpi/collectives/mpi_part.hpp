// What of a collective call MPI moves, where mpress completes the program's request.
#pragma once

#include "mpi/calls/calls.hpp"
#include "mpi/collectives/kept_call.hpp"
#include "mpi/staging/staged_call.hpp"

namespace mpress::engine {

class Job;

/// A request of MPI's of which the program does not know. Nothing, and over, until one is begun.
/// One thread at a time calls it.
class MpiPart {
 public:
  explicit MpiPart(Job& job) : job_(job) {}
  MpiPart(const MpiPart&) = delete;
  MpiPart& operator=(const MpiPart&) = delete;
  ~MpiPart();

  /// Begins what `kept` has left for MPI, on the program's communicator. Raises, and returns an
  /// error code.
  int begin(KeptCall& kept);

  /// The same on the private communicator of the same members. Raises nothing: code() tells.
  void begin_privately(KeptCall& kept, MPI_Comm comm);

  /// Makes a persistent call of it, on the program's communicator, for start(). Raises.
  int make(KeptCall& kept);

  /// Starts that anew. Raises.
  int start();

  /// Never waits. Returns whether it is over.
  bool advance();

  /// Once it is over without an error: what it brought becomes the program's. Raises nothing.
  int deliver() { return staged_.deliver(job_); }

  /// Once it is over: MPI's error code; has MPI raised that on the program's communicator?
  int code() const { return code_; }
  bool is_raised() const { return is_raised_ && is_on_programs_; }

 private:
  Job& job_;
  StagedCall staged_;
  MPI_Request request_ = MPI_REQUEST_NULL;  ///< persistent ones stay
  bool is_persistent_ = false;
  bool is_on_programs_ = false;  ///< its communicator
  bool is_under_way_ = false;
  bool is_raised_ = false;
  int code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
