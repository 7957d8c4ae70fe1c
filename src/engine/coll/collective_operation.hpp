// A collective call that mpress serves, whatever it does and in whichever form.
#pragma once

#include <memory>

#include "codec/float_environment.hpp"
#include "core/operation.hpp"
#include "engine/coll/blocks/long_pairs.hpp"
#include "engine/coll/operands.hpp"
#include "engine/coll/route.hpp"
#include "mpi/objects/comm_info.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// A blocking call waits for it, a non-blocking one has it once, a persistent one starts it again
/// and again.
class CollectiveOperation : public Operation {
 public:
  /// From now on advance() lets it proceed. Not while it is under way. `modes`: those of the thread
  /// that makes the call, with which raw and lossless sums are made, whichever thread makes them.
  virtual void start(FloatModes modes) = 0;

  /// The program waits for it.
  virtual void await(bool is_awaited) = 0;

  /// For a call that blocks, between two calls of advance(): see Runner.
  virtual bool wait_in_mpi() = 0;

  /// Has a device been given all of it, in such a way that a stream of the program's waits for it?
  /// Then it need not be waited for here.
  virtual bool is_in_stream() const { return false; }

  /// How it is counted.
  virtual trace::Called called() const = 0;

  /// Once it is over: an error code of MPI's.
  virtual int code() const = 0;

  /// Then: what Outcome::bound says.
  virtual double bound() const = 0;
};

/// What encodes a call's blocks: the innermost of what was asked.
Spec spec_of(const Job& job, const Operands& operands, const Team& team);

/// Tells a call's outcome, where that was asked for.
void tell_outcome(const Operands& operands, const CollectiveOperation& operation);

/// `served`: as Routing says. A persistent call has its tag for its lifetime; others take it while
/// they are under way, and wait for it. All but `served` outlives it.
std::unique_ptr<CollectiveOperation> make_operation(Job& job, const Collective& call,
                                                    const Operands& operands, mpi::CommInfo& comm,
                                                    Team& team, const Served& served);

/// Makes the operation of a call's long pairs alone, beside MPI's call; `pairs` outlives it, too.
std::unique_ptr<CollectiveOperation> make_pairs_operation(Job& job, const Collective& call,
                                                          const Operands& operands,
                                                          mpi::CommInfo& comm, Team& team,
                                                          const Served& served,
                                                          const LongPairs& pairs);

/// Before a start: the private communicator gets the hints that the program's has by now.
void pass_on_hints(const mpi::CommInfo& comm, const Team& team);

/// What went to a rank, or came from it, by kernels and a link, without a message.
struct Moved {
  std::size_t raw_bytes;
  std::size_t wire_bytes;
  Codec codec;

  /// As it is.
  Moved(std::size_t bytes) : Moved(bytes, bytes, Codec::none) {}
  Moved(std::size_t raw, std::size_t wire, Codec by)
      : raw_bytes(raw), wire_bytes(wire), codec(by) {}
};

/// Counts what a rank got of this one, and this one of that rank.
void count_by_kernel(Job& job, trace::Called called, trace::Way way, int rank, const Moved& sent,
                     const Moved& received);

// Of blocking calls:

/// Waits for one that has started.
void wait_for(Job& job, CollectiveOperation& operation);

/// Counts one that is over, which began at `begin_ns`, and what it found out.
void count_blocking(Job& job, trace::Called called, std::uint64_t begin_ns);

}  // namespace mpress::engine
