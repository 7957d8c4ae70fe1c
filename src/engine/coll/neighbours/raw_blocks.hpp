// The blocks of a neighbourhood's call as one message of MPI's each, from where the program has
// them to where it wants them: where none of them could be anything but raw.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/coll/neighbours/exchange.hpp"
#include "engine/coll/neighbours/raw_messages.hpp"
#include "engine/job/context.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// Raises nothing. One thread at a time calls it.
class RawBlocks {
 public:
  /// Goes all that this process sends and receives on `way`, which passes nothing on, so? The other
  /// end of each block answers alike for it, and may send it, or receive it, by a Runner.
  /// `comm`: the program's, of the call.
  static bool may_serve(Job& job, const Context& context, const mpi::CommInfo& comm,
                        const Exchange& exchange, const Way& way);

  /// `exchange` and `way` outlive it.
  RawBlocks(Job& job, trace::Called called, const Context& context, int tag,
            const Exchange& exchange, const Way& way)
      : exchange_(exchange), way_(way), messages_(job, called, context, tag) {}

  /// Posts all. Not while it is under way.
  void start();
  /// Waits for no rank. True once it is over.
  bool advance();
  /// For a call that blocks, between two calls of advance(): see Runner.
  bool wait_in_mpi();
  int code() const { return messages_.code(); }

 private:
  const Exchange& exchange_;
  const Way& way_;
  RawMessages messages_;
};

}  // namespace mpress::engine
