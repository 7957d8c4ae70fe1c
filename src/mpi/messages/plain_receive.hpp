// Receives that MPI has in the program's own buffer, where nothing is prepared: into memory without
// gaps.
//
// What comes may be looked at where it lies once MPI is done, and need be only where its size is a
// frame's. So nothing is noted before. Calls that return before the message is there leave only
// such receives plain as expect no frame (Messaging::least_watched_bytes): of those a request keeps
// just enough to find one all the same. A sender's threshold may be another one by a hint, and
// where a receive has too little capacity, a header could seem to be all of the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "mpi/messages/mpi_receive.hpp"
#include "mpi/messages/receive_request.hpp"

namespace mpress::engine {

class StatusOf;

class PlainReceive {
 public:
  /// Nothing where it is none, or MPI may refuse it. `is_blocking`: it may expect a frame.
  static std::optional<PlainReceive> of(Job& job, const ReceiveArguments& arguments,
                                        bool is_blocking);

  /// What to give to MPI.
  const ReceiveArguments& posted() const { return posted_; }

  /// Bytes of data that fit.
  std::size_t capacity() const { return capacity_; }

  /// Is it counted, and is how long it waited?
  bool expects_frames() const { return expects_frames_; }

  /// When a blocking call begins to wait for it.
  std::uint64_t begin() const { return expects_frames_ ? trace::now_ns() : 0; }

  /// Ends a blocking call, which counts as `op`, and for which MPI returned `code`: finds out
  /// whether a frame has come, and delivers it. Returns MPI's code, which has been raised.
  int end(Job& job, trace::Op op, const StatusOf& status, std::uint64_t begin_ns, int code) const;

 private:
  PlainReceive(const ReceiveArguments& posted, std::size_t capacity, bool expects_frames,
               int device)
      : posted_(posted), capacity_(capacity), expects_frames_(expects_frames), device_(device) {}

  ReceiveArguments posted_;
  std::size_t capacity_;
  bool expects_frames_;
  int device_;  ///< whose memory it is, if that was looked up
};

/// What is kept of one that expects no frame, and that the program completes later.
class PlainRequest final : public Request {
 public:
  PlainRequest(const PlainReceive& plain, trace::Op op, std::shared_ptr<mpi::CommInfo> comm);

  Ending finish(Job& job, MPI_Status& status) override;
  bool settle(Job& job, MPI_Request request) override;
  bool is_counted() const override { return false; }

 private:
  bool finds_frame(Job& job, const MPI_Status& status);

  const ReceiveArguments arguments_;
  const trace::Op op_;
  const std::shared_ptr<mpi::CommInfo> comm_;
  std::unique_ptr<MpiReceive> found_;  ///< a frame that has come
};

}  // namespace mpress::engine
