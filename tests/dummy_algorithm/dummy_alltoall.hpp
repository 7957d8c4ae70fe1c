// MPI_Alltoall by MPI's own call on the team's private communicator: the operation of
// coll/algorithms/dummy.
#pragma once

#include "coll/blocks/served.hpp"
#include "coll/collective_operation.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/job/job.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {

class DummyAlltoall final : public CollectiveOperation {
 public:
  DummyAlltoall(Job&, const Collective& call, const Operands& operands, Team& team, const Served&)
      : call_(call), operands_(operands), team_(team) {}

  void start(FloatModes) override {
    const Blocks& out = operands_.send.reads;
    const Blocks& in = operands_.receive.writes;
    const int code = mpi::buffer_calls().Ialltoall(
        operands_.send.buffer, static_cast<int>(out.count(0)), out.type(0),
        const_cast<void*>(operands_.receive.buffer), static_cast<int>(in.count(0)), in.type(0),
        comm_of(team_), &request_);
    status_ = status_of(code);
    is_under_way_ = status_.is_ok();
  }
  bool advance() override {
    if (!is_under_way_) return true;
    int is_complete = 0;
    bool is_raised = false;
    const int code = mpi::test(&request_, &is_complete, MPI_STATUS_IGNORE, &is_raised);
    status_ = status_of(code);
    is_under_way_ = status_.is_ok() && !is_complete;
    return !is_under_way_;
  }
  bool needs_host() const override { return false; }
  void await(bool) override {}
  bool wait() override { return false; }
  trace::Called called() const override { return call_.op; }
  Status status() const override { return status_; }
  double bound() const override { return 0; }

 private:
  const Collective& call_;
  const Operands& operands_;
  Team& team_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_under_way_ = false;
  Status status_;
};

}  // namespace mpress::engine
