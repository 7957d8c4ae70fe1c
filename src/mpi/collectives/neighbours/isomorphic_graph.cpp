#include "mpi/collectives/neighbours/isomorphic_graph.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "mpi/calls/buffer_calls.hpp"
#include "mpi/collectives/neighbours/cartesian_grid.hpp"
#include "mpi/collectives/neighbours/hints.hpp"
#include "mpi/collectives/neighbours/neighbours.hpp"
#include "mpi/collectives/operand_blocks.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

std::atomic<bool> has_any{false};

using Offset = std::vector<int>;
/// By relative neighbour: its places in a list of the program's.
using Places = std::map<Offset, std::vector<int>>;

/// What one process has promised.
struct Promise {
  bool is_given = false;
  int code = MPI_SUCCESS;  ///< it is wrong, or broken
  std::string error;
  NeighbourHints hints;
  schedule::Grid grid;
  int rank = 0;
  bool has_borders = false;
  Places destinations;
  Places sources;

  void fail(int with, std::string why) {
    if (code != MPI_SUCCESS) return;
    code = with;
    error = std::move(why);
  }
};

/// `sign`: -1 of sources, whose offset leads here.
Places places_of(const schedule::Grid& grid, int rank, const std::vector<int>& ranks, int sign) {
  Places places;
  Offset offset(static_cast<std::size_t>(grid.dimensions()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == mpi::Topology::none) continue;
    sign > 0 ? grid.offset(rank, ranks[i], offset) : grid.offset(ranks[i], rank, offset);
    places[offset].push_back(static_cast<int>(i));
  }
  return places;
}

void read_lists(MPI_Comm parent, MPI_Comm created, Promise& promise) {
  int kind = MPI_UNDEFINED;
  mpi::calls().Topo_test(parent, &kind);
  const auto topology = mpi::read_topology(created, true);
  if (kind != MPI_CART || !topology) {
    return promise.fail(MPI_ERR_TOPOLOGY,
                        "expected a graph of the processes of a Cartesian communicator");
  }
  promise.grid = grid_of(parent);
  mpi::calls().Comm_rank(created, &promise.rank);
  for (int j = 0; j < promise.grid.dimensions(); ++j) {
    promise.has_borders = promise.has_borders || !promise.grid.is_periodic(j);
  }
  promise.destinations = places_of(promise.grid, promise.rank, topology->destinations, 1);
  promise.sources = places_of(promise.grid, promise.rank, topology->sources, -1);
}

/// The relative neighbours of one process, each as often as it has it.
std::vector<int> flattened(const Places& places) {
  std::vector<int> all;
  for (const auto& [offset, of] : places) {
    for (std::size_t i = 0; i < of.size(); ++i) all.insert(all.end(), offset.begin(), offset.end());
  }
  return all;
}

/// Has a process all neighbours of the list that exist, and no others?
bool has_just(const Promise& promise, const schedule::Neighbourhood& list, const Places& places,
              int sign) {
  Offset here(static_cast<std::size_t>(list.dimensions()));
  list.grid().coordinates(promise.rank, here);
  std::map<Offset, std::size_t> expected;
  for (int i = 0; i < list.count(); ++i) {
    const auto offset = list.offset(i);
    if (list.grid().neighbour(here, offset, sign) == schedule::Grid::none) continue;
    ++expected[Offset(offset.begin(), offset.end())];
  }
  return std::ranges::equal(places, expected, [](const auto& has, const auto& wants) {
    return has.first == wants.first && has.second.size() == wants.second;
  });
}

/// The list that all have some of: each offset as often as any process has it. Collective.
std::vector<int> united(const Promise& promise, MPI_Comm comm) {
  const std::vector<int> own = flattened(promise.destinations);
  int size = 0;
  mpi::calls().Comm_size(comm, &size);
  std::vector<int> counts(static_cast<std::size_t>(size)), begins(counts.size());
  const int count = static_cast<int>(own.size());
  mpi::calls().Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm);
  int total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    begins[i] = total;
    total += counts[i];
  }
  std::vector<int> all(static_cast<std::size_t>(total) + 1);
  mpi::buffer_calls().Allgatherv(own.data(), count, MPI_INT, all.data(), counts.data(),
                                 begins.data(), MPI_INT, comm);
  const auto width = static_cast<std::size_t>(promise.grid.dimensions());
  std::map<Offset, std::size_t> most;
  for (std::size_t i = 0; i < counts.size() && width > 0; ++i) {
    std::map<Offset, std::size_t> has;
    for (int at = begins[i]; at < begins[i] + counts[i]; at += static_cast<int>(width)) {
      ++has[Offset(all.begin() + at, all.begin() + at + static_cast<std::ptrdiff_t>(width))];
    }
    for (const auto& [offset, times] : has) most[offset] = std::max(most[offset], times);
  }
  std::vector<int> list;
  for (const auto& [offset, times] : most) {
    for (std::size_t i = 0; i < times; ++i) list.insert(list.end(), offset.begin(), offset.end());
  }
  return list;
}

/// The greatest of each process's numbers. Collective.
template <std::size_t n>
std::array<std::uint64_t, n> greatest(std::array<std::uint64_t, n> numbers, MPI_Comm comm) {
  mpi::calls().Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(n), MPI_UINT64_T, MPI_MAX,
                         comm);
  return numbers;
}

/// Neighbour by neighbour of the list: the place of each.
std::vector<int> numbered(const schedule::Neighbourhood& list, const Places& places) {
  std::vector<int> found;
  std::map<Offset, std::size_t> seen;
  for (int i = 0; i < list.count(); ++i) {
    const auto offset = list.offset(i);
    const Offset key(offset.begin(), offset.end());
    const auto at = places.find(key);
    const std::size_t time = seen[key]++;
    found.push_back(at != places.end() && time < at->second.size() ? at->second[time] : -1);
  }
  return found;
}

/// Do all keep the promise? Collective; all find the same. Empty where none has given it.
std::shared_ptr<const IsomorphicGraph> agreed(Promise& promise, MPI_Comm comm) {
  const std::uint64_t hints = promise.hints.hash();
  const auto found = greatest<6>({promise.is_given, !promise.is_given, promise.code != MPI_SUCCESS,
                                  hints, ~hints, promise.has_borders},
                                 comm);
  if (found[0] == 0) return nullptr;
  const bool is_alike = found[1] == 0 && found[3] == ~found[4];
  if (found[2] != 0 || !is_alike) {
    promise.fail(MPI_ERR_TOPOLOGY, is_alike ? "another process has broken it"
                                            : "processes have given different keys");
    return nullptr;
  }
  const std::vector<int> offsets =
      found[5] != 0 ? united(promise, comm) : flattened(promise.destinations);
  const auto width = static_cast<std::size_t>(promise.grid.dimensions());
  const int count = width > 0 ? static_cast<int>(offsets.size() / width) : 0;
  schedule::Neighbourhood list(promise.grid, count, offsets);
  const bool is_kept = has_just(promise, list, promise.destinations, 1) &&
                       has_just(promise, list, promise.sources, -1);
  const std::uint64_t hash = list.hash();
  const auto kept = greatest<3>({!is_kept, hash, ~hash}, comm);
  if (kept[0] != 0 || kept[1] != ~kept[2]) {
    promise.fail(MPI_ERR_TOPOLOGY, "processes have different relative neighbours");
    return nullptr;
  }
  auto graph = std::make_shared<IsomorphicGraph>();
  graph->destinations = numbered(list, promise.destinations);
  graph->sources = numbered(list, promise.sources);
  graph->has_borders = found[5] != 0;
  graph->plans = std::make_shared<NeighbourPlans>(std::move(list), promise.rank, promise.hints);
  return graph;
}

std::vector<BlockData> blocks_at(const Operand& operand, const Blocks& blocks,
                                 const std::vector<int>& places) {
  std::vector<BlockData> found(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) found[i] = data_of(operand, blocks, places[i]);
  }
  return found;
}

/// Of any block, where all have as many. A process without targets need not say what it would send.
std::size_t even_bytes(const Operands& operands) {
  const bool sends = operands.send_entries > 0;
  const Blocks& blocks = sends ? operands.send.reads : operands.receive.writes;
  const MPI_Count count = blocks.count(0);
  const auto type = count > 0 ? mpi::type_info(blocks.type(0)) : nullptr;
  return type ? type->size * static_cast<std::size_t>(count) : 0;
}

}  // namespace

bool has_isomorphic_graphs() { return has_any.load(std::memory_order_relaxed); }

int note_promise(Job& job, MPI_Comm parent, MPI_Info info, MPI_Comm* created) {
  const auto comm = mpi::comm_info(*created);
  if (!comm) return MPI_SUCCESS;
  comm->is_distributed_graph = true;
  if (!may_exchange(job, comm)) return MPI_SUCCESS;  // some members may not be here
  Promise promise;
  promise.code = read_flag(info, "mpress_isomorphic", promise.is_given, promise.error);
  if (promise.code == MPI_SUCCESS && promise.is_given) {
    promise.code = read_neighbour_hints(info, promise.hints, promise.error);
  }
  promise.is_given = promise.is_given || promise.code != MPI_SUCCESS;
  if (promise.code == MPI_SUCCESS && promise.is_given) read_lists(parent, *created, promise);
  const auto graph = agreed(promise, *created);
  if (promise.code != MPI_SUCCESS) {
    trace::say("rank " + std::to_string(job.rank) + ": mpress_isomorphic: " + promise.error);
    mpi::calls().Comm_free(created);
    mpi::calls().Comm_call_errhandler(parent, promise.code);
    return promise.code;
  }
  if (!graph) return MPI_SUCCESS;
  comm->graph = graph;
  has_any.store(true, std::memory_order_relaxed);
  if (needs_preparation(job)) prepare_exchanges(job, comm);
  return MPI_SUCCESS;
}

std::shared_ptr<mpi::CommInfo> isomorphic_comm(const Operands& operands) {
  auto comm = mpi::comm_info(operands.comm);
  return comm && comm->graph && operands.known && is_sound(operands) ? comm : nullptr;
}

ProgramExchange exchange_on_graph(const Collective& call, const Operands& operands,
                                  const mpi::CommInfo& comm) {
  const auto& graph = static_cast<const IsomorphicGraph&>(*comm.graph);
  const Blocks& sent = operands.send.reads;
  const auto count = graph.destinations.size();
  const bool has_own =
      call.op != trace::Op::neighbor_alltoall && call.op != trace::Op::neighbor_allgather;
  ProgramExchange exchange;
  exchange.pattern = call.has_many_readers ? Pattern::allgather : Pattern::alltoall;
  exchange.comm = operands.comm;
  exchange.ask(operands.asked);
  exchange.defaults = operands.defaults;
  exchange.plans = graph.plans;
  exchange.received = blocks_at(operands.receive, operands.receive.writes, graph.sources);
  if (call.has_many_readers) {
    exchange.sent = {data_of(operands.send, sent, 0)};
    if (!has_own) exchange.sizes = {even_bytes(operands)};
    return exchange;
  }
  exchange.sent = blocks_at(operands.send, sent, graph.destinations);
  if (!has_own) {
    exchange.sizes.assign(count, even_bytes(operands));
  } else if (graph.plans->hints().has_uniform_sizes && !graph.has_borders) {
    for (const BlockData& block : exchange.sent) exchange.sizes.push_back(block.bytes);
  }
  return exchange;
}

}  // namespace mpress::engine
