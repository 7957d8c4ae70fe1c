// Calls of include/mpress/iso.h that move data, in all three forms. mpress serves them all: MPI has
// no such calls.
#pragma once

#include "mpi/collectives/neighbours/program_exchange.hpp"
#include "mpi/collectives/route.hpp"

namespace mpress::engine {

/// Can calls on a communicator be served? All its members know alike.
bool may_exchange(Job& job, const std::shared_ptr<mpi::CommInfo>& comm);

/// Are calls that do not block to be prepared by one that does? All members know alike.
bool needs_preparation(const Job& job);
/// That: collective, and waits.
void prepare_exchanges(Job& job, const std::shared_ptr<mpi::CommInfo>& comm);

/// A call that blocks. Returns an error code of MPI's, which has been raised.
int exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
             const ProgramExchange& exchange);

/// Begins one that does not: waits for no other rank. `request` completes when it is over.
int begin_exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
                   ProgramExchange exchange, MPI_Request* request);

/// Makes a persistent one, for which it may wait; `request` is inactive.
int make_exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
                  ProgramExchange exchange, MPI_Request* request);

}  // namespace mpress::engine
