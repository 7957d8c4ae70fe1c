// A blocking call that has a place in a stream of the program's: what the operation refers to, for
// as long as devices work at it once the call has returned.
#pragma once

#include <memory>
#include <utility>

#include "coll/collective_operation.hpp"
#include "coll/team.hpp"
#include "core/operation.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

class StreamedCall final : public Operation {
 public:
  /// Of arrays that the operands name nothing is kept.
  StreamedCall(const Job& job, const Collective& call, const Operands& operands,
               std::shared_ptr<mpi::CommInfo> comm, Team& team)
      : job_(job), call_(call), operands_(operands), comm_(std::move(comm)), hold_(team) {}

  const Collective& call() const { return call_; }
  const Operands& operands() const { return operands_; }

  /// That devices work at without this process; it looks at no array of the operands' any more.
  void keep(std::unique_ptr<CollectiveOperation> operation) { operation_ = std::move(operation); }

  /// No call completes it, so what went wrong is raised later.
  bool advance() override {
    if (!operation_->advance()) return false;
    const int code = job_.code_of(operation_->status());
    if (code != MPI_SUCCESS) mpi::raise_later([comm = comm_, code] { comm->raise(code); });
    return true;
  }
  bool needs_host() const override { return false; }

 private:
  const Job& job_;
  const Collective call_;
  const Operands operands_;
  const std::shared_ptr<mpi::CommInfo> comm_;
  const TeamHold hold_;
  std::unique_ptr<CollectiveOperation> operation_;  ///< destroyed first: it uses what is above
};

}  // namespace mpress::engine
