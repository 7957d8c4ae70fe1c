// Who serves a collective call: MPI, or mpress. All members of a communicator answer alike, without
// asking at every call: by what the call is, by its number, by its signature, and by the mode of
// the communicator. Never by where this rank's buffer lies.
//
// The mode is whether any member has buffers on devices. Members tell each other at calls 1, 2, 4,
// 8 ... and then at every 1024th, each whether it has had any so far. Within a mode any mix of
// buffers on hosts and devices is right; in the wrong one a call is slow, not wrong.
#pragma once

#include <memory>

#include "config/config.hpp"
#include "engine/coll/operands.hpp"
#include "engine/context.hpp"
#include "mpi/comm_info.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;

/// What a collective call is, as its name tells.
struct Collective {
  trace::Op op = trace::Op::count_;  ///< count_: of none that mpress serves
  Family family = Family::count_;    ///< of its kill switch
  bool has_own_counts = false;       ///< no rank knows all counts
  bool has_many_readers = false;     ///< a block goes to several ranks
};

/// Who serves a call.
struct Route {
  Context* context = nullptr;  ///< whose members all let mpress do so; null: MPI does
  bool has_failed = false;     ///< a member has ended, and nobody will
};

/// Of a blocking call, as all members of the communicator know. Waits for them where they tell each
/// other, and at the first call that could be served, which makes the context. `comm`: the call's,
/// where MPI does not serve it.
Route route_of(Job& job, const Collective& call, const Operands& operands,
               std::shared_ptr<mpi::CommInfo>& comm);

}  // namespace mpress::engine
