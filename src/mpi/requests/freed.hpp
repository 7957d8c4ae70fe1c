// Requests that the program freed while they were active. Their frames must live on, and what they
// receive must still be decoded, so mpress completes them in the program's place.
#pragma once

#include <memory>

#include "mpi/calls/calls.hpp"
#include "mpi/requests/request.hpp"

namespace mpress::engine {

/// An operation of its own in the progress list. No call is left that an error belongs to, so the
/// next one raises it.
class FreedRequest final : public Operation {
 public:
  /// `request`: MPI's, or what stands in for it; `entry`: no longer in the table.
  FreedRequest(Job& job, MPI_Request request, std::shared_ptr<Request> entry)
      : job_(job), request_(request), entry_(std::move(entry)) {}

  bool advance() override;
  bool needs_host() const override { return false; }  // its entry tells that, if it is followed

  /// MPI ends: what will come is waited for, the rest becomes MPI's, which does not wait for it
  /// either, and may read and write its memory to its end.
  void release();

 private:
  static void tell(const Ending& ending);

  Job& job_;
  MPI_Request request_;
  std::shared_ptr<Request> entry_;
};

/// Lets mpress complete a request whose entry has been removed from the table.
void complete_freed(Job& job, MPI_Request request, std::shared_ptr<Request> entry);

/// Before MPI ends: completes freed requests, as long as another ends within a second, and releases
/// the rest.
void release_freed(Job& job);

}  // namespace mpress::engine
