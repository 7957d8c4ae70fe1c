// An exchange of a neighbourhood as the program's arguments ask for it.
#pragma once

#include <memory>
#include <vector>

#include "coll/neighbourhoods/exchange.hpp"
#include "core/asked.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

class Job;

struct ProgramExchange : Exchange {
  MPI_Comm comm = MPI_COMM_NULL;
  std::optional<Asked> asked = {};
  /// Of a call that names no stream: its place behind the default streams.
  std::shared_ptr<StreamOrder> defaults = nullptr;

  /// Keeps a layout for blocks of its own, which share what this returns: to count their owners
  /// would take as long as all else of a short call.
  std::shared_ptr<const Layout> hold(std::shared_ptr<const Layout> layout);

  /// It is a reduction, which combines what comes to `result`, of items of `type`. Both outlive it.
  void combine(const BlockData& result, MPI_Datatype type, MPI_Op op);

  /// Takes over what the call asks for itself.
  void ask(std::optional<Asked> for_call);

  /// Then, before it begins.
  void open(Job& job);

  /// After that: the program may free its types while the call is under way.
  void keep_types(Job& job);

 private:
  MPI_Datatype sum_type_ = MPI_DATATYPE_NULL;
  MPI_Op sum_op_ = MPI_OP_NULL;
  std::shared_ptr<const Layout> held_;  ///< of most calls the only one
  std::vector<std::shared_ptr<const Layout>> more_held_;
  std::vector<std::unique_ptr<mpi::KeptType>> kept_;
};

/// Before the start of a call with memory of devices: its place behind what their default streams
/// hold. Null where that is nothing.
std::shared_ptr<StreamOrder> order_behind_defaults(Job& job, const Exchange& exchange);

}  // namespace mpress::engine
