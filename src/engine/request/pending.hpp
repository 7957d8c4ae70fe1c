// One request that needs work of mpress's when it completes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "engine/coll/staged_call.hpp"
#include "engine/p2p/receive.hpp"
#include "engine/p2p/send.hpp"
#include "engine/request/finished_request.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"

namespace mpress::engine {

/// No chunked message has this serial number.
inline constexpr std::uint64_t no_message = UINT64_MAX;

/// One request that needs work when it completes.
struct Pending {
  std::uintptr_t key = 0;
  std::atomic<bool> claimed{false};  ///< a call is about to complete it
  Pending* next = nullptr;

  memory::Buffer frame;                        ///< a send's frame; alive until MPI is done with it
  std::uint64_t chunked_message = no_message;  ///< whose chunks the frame announces
  std::optional<Receive> receive;              ///< set for receives
  std::unique_ptr<StagedCall> staged;          ///< set for collective calls
  /// A send whose data is offered to its receiver where the program has it.
  std::unique_ptr<ChunkSend> offered;
  trace::Row* row = nullptr;    ///< of that send
  int send_code = MPI_SUCCESS;  ///< of its header, which MPI has raised
  /// The send of an exchange whose receive is the program's request; or of what is offered.
  MPI_Request send_half = MPI_REQUEST_NULL;
  /// Set where MPI is done with the header of a message in chunks, but the program's request is
  /// not: what will complete it.
  std::optional<OpenRequest> collect;

  // Persistent requests stay in the table until they are freed.
  bool persistent = false;
  bool active = true;  ///< started and not complete; always true where not persistent
  /// Where mpress started another operation in the persistent one's place, that request: calls
  /// that complete the program's request complete this one instead.
  MPI_Request stand_in = MPI_REQUEST_NULL;
  bool replaced() const { return stand_in != MPI_REQUEST_NULL; }
  SendArguments send;                  ///< of a persistent send
  ImmediateSend start_send = nullptr;  ///< in the mode of the persistent send
  /// Of a persistent request; its handle may be freed, and given to another communicator. Also of
  /// an offered send.
  std::shared_ptr<mpi::CommInfo> comm;
  int source = MPI_ANY_SOURCE;  ///< of a persistent receive
  int tag = 0;                  ///< of a persistent request

  /// For a receive that a probe had satisfied: is there work left, or an error to tell?
  bool must_be_kept() const { return collect || receive->failed(); }

  /// May MPI report the request complete while chunks of its message are still to come, or while
  /// the other half of an exchange is not over? Or must it be completed for MPI to do so?
  bool may_be_late(const Job& job) const {
    if (!active) return false;
    if (collect || send_half != MPI_REQUEST_NULL) return true;
    return receive && !replaced() && receive->may_come_in_chunks(job);
  }

  /// Has the header of a message in chunks come, but not all of them?
  bool is_collecting() const { return receive && (collect || receive->is_collecting()); }

  /// Is the request one that only mpress can complete?
  bool only_mpress_completes() const { return collect || send_half != MPI_REQUEST_NULL; }

  /// Where it may be late: takes what has come, without waiting. True where MPI may now complete
  /// it, or its stand-in. `waits_for_more`: as of ChunkSend::advance().
  bool is_ready(Job& job, MPI_Request request, bool waits_for_more = false);

  /// After MPI has completed a send with `status`: where it was cancelled, so are its chunks.
  void recall_chunks(Job& job, const MPI_Status& status) const;

 private:
  bool is_sent(Job& job, bool waits_for_more);
  bool collect_persistent(Job& job, MPI_Request request);
};

}  // namespace mpress::engine
