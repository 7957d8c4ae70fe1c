#include "engine/coll/collective.hpp"

#include <algorithm>

#include "engine/coll/blocks.hpp"
#include "engine/coll/runner.hpp"
#include "engine/job.hpp"
#include "schedule/hierarchical.hpp"
#include "schedule/linear.hpp"
#include "schedule/pairwise.hpp"
#include "schedule/scatter_allgather.hpp"
#include "schedule/tree.hpp"

namespace mpress::engine {
namespace {

/// At most so many blocks each way are under way at once.
constexpr int window = 32;

/// Where all ranks reach each other alike: from each origin straight to its readers.
schedule::Schedule flat(const schedule::Task& task, int rank) {
  switch (task.op) {
    case schedule::Op::bcast:
      return task.segments > 1 ? two_shot_bcast(task, rank) : binomial_bcast(task, rank);
    case schedule::Op::scatter: return linear_scatter(task, rank, window);
    case schedule::Op::gather: return linear_gather(task, rank, window);
    case schedule::Op::allgather: return scattered_allgather(task, rank, window);
    case schedule::Op::alltoall: break;
  }
  return scattered_alltoall(task, rank, window);
}

/// Where links between hosts are what counts: what several ranks of a host get comes there once.
schedule::Schedule between_hosts(const schedule::Task& task, int rank,
                                 const schedule::Hosts& hosts) {
  switch (task.op) {
    case schedule::Op::bcast: {
      schedule::Radices radices;
      radices.within = std::max(hosts.most_members(), 2);
      return hierarchical_bcast(task, rank, hosts, radices);
    }
    case schedule::Op::allgather: return hierarchical_allgather(task, rank, hosts);
    case schedule::Op::alltoall: return hierarchical_alltoall(task, rank, hosts, window);
    case schedule::Op::scatter:
    case schedule::Op::gather: break;
  }
  return flat(task, rank);
}

}  // namespace

std::optional<int> serve_collective(Job& job, const Collective& call, const Operands& operands) {
  std::shared_ptr<mpi::CommInfo> comm;
  const Route route = route_of(job, call, operands, comm);
  if (route.has_failed) return comm->raise(MPI_ERR_OTHER);
  if (!route.context) return std::nullopt;
  const Context& context = *route.context;
  if (const mpi::Hints hints = comm->hints.get(); !hints.empty()) {
    if (const auto blocks = mpi::comm_info(context.comm())) blocks->hints.update(hints);
  }
  const schedule::Hosts& hosts = context.hosts();
  BlockMap blocks(job, call, operands, context.rank(), hosts);
  // Who fails here still takes part: others wait for blocks.
  const int opened = blocks.open();
  const schedule::Schedule schedule = hosts.count() > 1
                                          ? between_hosts(blocks.task(), context.rank(), hosts)
                                          : flat(blocks.task(), context.rank());
  int code = run_schedule(job, call, context, schedule, blocks, opened);
  if (code == MPI_SUCCESS) code = blocks.close();
  return code == MPI_SUCCESS ? code : comm->raise(code);
}

}  // namespace mpress::engine
