// The calls of include/mpress/iso.h that move data.

#include <mpress/iso.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/call.hpp"
#include "api/entries.hpp"
#include "api/iso/neighbourhood.hpp"
#include "api/request.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/calls/buffer_calls.hpp"
#include "mpi/collectives/neighbours/neighbours.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/self_comm.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::api {
namespace {

using engine::BlockData;
using engine::Pattern;
using engine::ProgramExchange;

/// One buffer of a call, as its arguments tell: with counts of one type or of several, or blocks
/// behind each other.
struct Side {
  const char* name;  ///< "sent" or "received"
  const void* buffer;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const MPI_Count* counts = nullptr;
  const MPI_Aint* displacements = nullptr;
  const MPI_Datatype* types = nullptr;
  bool has_arrays = false;
  bool has_types = false;
};

/// Datatypes; asks MPI about each once where neighbours share it.
class Types {
 public:
  /// Of blocks of `exchange`, which keeps them.
  explicit Types(ProgramExchange& exchange) : exchange_(exchange) {}

  /// False where it is no committed type.
  bool look(MPI_Datatype type) {
    if (type == type_ && is_known_) return true;
    type_ = type;
    auto layout = mpi::type_info(type);
    is_known_ = layout != nullptr;
    if (!is_known_) return false;
    layout_ = exchange_.hold(std::move(layout));
    MPI_Count lower = 0;
    mpi::calls().Type_get_extent_x(type, &lower, &extent_);
    return true;
  }
  const std::shared_ptr<const engine::Layout>& layout() const { return layout_; }
  std::int64_t extent() const { return extent_; }

 private:
  ProgramExchange& exchange_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool is_known_ = false;
  std::shared_ptr<const engine::Layout> layout_;
  MPI_Count extent_ = 0;
};

std::string place(const Side& side, const char* what, std::size_t i) {
  return std::string(side.name) + "_" + what + "[" + std::to_string(i) + "]";
}

Wrong check_arrays(const Side& side, std::size_t neighbours) {
  const auto is_missing = [&](const char* what) {
    return is_null((std::string(side.name) + "_" + what).c_str());
  };
  if (side.buffer == MPI_IN_PLACE) {
    return {MPI_ERR_ARG, std::string(side.name) + " is MPI_IN_PLACE, which such calls do not take"};
  }
  if (!side.has_arrays || neighbours == 0) return {};
  if (!side.counts) return is_missing("counts");
  if (!side.displacements) return is_missing("displacements");
  if (side.has_types && !side.types) return is_missing("types");
  return {};
}

/// The block `offset` bytes on; addresses may be absolute.
BlockData shifted(BlockData block, std::int64_t offset) {
  const auto at =
      reinterpret_cast<std::uintptr_t>(block.data) + static_cast<std::uintptr_t>(offset);
  block.data = reinterpret_cast<void*>(at);
  return block;
}

/// Reads what one neighbour's arguments say; of blocks behind each other, the first one's.
Wrong read_block(const Side& side, std::size_t i, Types& types, BlockData& block,
                 bool is_there = true) {
  const MPI_Count count = side.has_arrays ? side.counts[i] : side.count;
  const MPI_Datatype type = side.has_types ? side.types[i] : side.type;
  if (count < 0) {
    const std::string name =
        side.has_arrays ? place(side, "counts", i) : std::string(side.name) + "_count";
    return {MPI_ERR_COUNT, name + " is " + std::to_string(count) + "; expected at least 0"};
  }
  if (!types.look(type)) {
    const std::string name =
        side.has_types ? place(side, "types", i) : std::string(side.name) + "_type";
    return {MPI_ERR_TYPE, name + " is no committed datatype"};
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * types.layout()->size;
  if (!is_there) {
    block = {nullptr, count, types.layout(), bytes};
    return {};
  }
  const std::int64_t offset = side.has_types    ? side.displacements[i]
                              : side.has_arrays ? side.displacements[i] * types.extent()
                                                : 0;
  block = shifted({const_cast<void*>(side.buffer), count, types.layout(), bytes}, offset);
  return {};
}

/// Reads the blocks of neighbours that exist, and no argument of others.
Wrong read_blocks(const Side& side, const std::vector<int>& ranks, ProgramExchange& exchange,
                  std::vector<BlockData>& blocks) {
  if (Wrong wrong = check_arrays(side, ranks.size())) return wrong;
  blocks.resize(ranks.size());
  Types types(exchange);
  if (!side.has_arrays && !ranks.empty()) {
    BlockData first;
    if (Wrong wrong = read_block(side, 0, types, first)) return wrong;
    const std::int64_t stride = first.count * types.extent();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == MPI_PROC_NULL) continue;
      blocks[i] = shifted(first, static_cast<std::int64_t>(i) * stride);
    }
    return {};
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == MPI_PROC_NULL) continue;
    if (Wrong wrong = read_block(side, i, types, blocks[i])) return wrong;
  }
  return {};
}

/// The sizes of blocks that pass this process, where all processes know them.
Wrong read_sizes(const Side& sent, bool is_irregular, const IsoNeighbourhood& neighbourhood,
                 const engine::NeighbourHints& hints, ProgramExchange& exchange) {
  const bool is_gather = exchange.pattern == Pattern::allgather;
  const std::size_t count = is_gather ? 1 : neighbourhood.targets.size();
  if (is_irregular && !hints.has_uniform_sizes) return {};
  Types types(exchange);
  exchange.sizes.resize(count);
  BlockData block;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || sent.has_arrays) {
      if (Wrong wrong = read_block(sent, i, types, block, false)) return wrong;
    }
    exchange.sizes[i] = block.bytes;
  }
  for (std::size_t i = 0; i < exchange.received.size(); ++i) {
    if (neighbourhood.sources[i] == MPI_PROC_NULL) continue;
    const std::size_t sent_bytes = exchange.sizes[is_gather ? 0 : i];
    const std::size_t received_bytes = exchange.received[i].bytes;
    if (received_bytes == sent_bytes) continue;
    return {MPI_ERR_ARG, "block " + std::to_string(i) + " has " + std::to_string(received_bytes) +
                             " bytes where it is received and " + std::to_string(sent_bytes) +
                             " where it is sent; expected as many"};
  }
  return {};
}

/// A call: what it is, its buffers, and where it is made.
struct Given {
  engine::Collective call;
  Pattern pattern;
  Side sent;
  Side received;
  MPI_Comm comm;
  const mpress_call* asks;
  MPI_Op op = MPI_OP_NULL;  ///< of a reduction, whose result is `received`, of one block
  bool reduces = false;
};

/// Does MPI take the operator, for vectors of this type?
Wrong check_operator(const Given& given) {
  // Open MPI says that the first two commute.
  if (given.op == MPI_OP_NULL || given.op == MPI_REPLACE || given.op == MPI_NO_OP) {
    return {MPI_ERR_OP, "op is no operator that combines"};
  }
  const mpi::HeldError held;
  int commutes = 0;
  int code = held.code(mpi::calls().Op_commutative(given.op, &commutes));
  if (code == MPI_SUCCESS && !commutes) {
    return {MPI_ERR_OP, "op does not commute; sources have no order"};
  }
  // On a communicator that returns errors; operators are not called.
  double nothing[2] = {0, 0};
  if (code == MPI_SUCCESS && mpi::self_comm() != MPI_COMM_NULL) {
    code = held.code(mpi::calls().Allreduce(&nothing[0], &nothing[1], 0, given.received.type,
                                            given.op, mpi::self_comm()));
  }
  if (code != MPI_SUCCESS) return {MPI_ERR_OP, "op does not take vectors of the datatype"};
  return {};
}

/// Of a reduction: every vector has as many bytes.
Wrong read_sum(const Given& given, const IsoNeighbourhood& neighbourhood,
               ProgramExchange& exchange) {
  static const std::vector<int> one{0};
  std::vector<BlockData> results;
  if (Wrong wrong = read_blocks(given.received, one, exchange, results)) return wrong;
  if (Wrong wrong = check_operator(given)) return wrong;
  const BlockData& result = results[0];
  if (result.count > INT_MAX && !mpi::buffer_calls().Reduce_local_c) {
    return {MPI_ERR_COUNT, "count is more than this MPI's operators take"};
  }
  for (std::size_t i = 0; i < exchange.sent.size(); ++i) {
    const bool is_there =
        given.pattern == Pattern::allgather || neighbourhood.targets[i] != MPI_PROC_NULL;
    if (!is_there || exchange.sent[i].bytes == result.bytes) continue;
    return {MPI_ERR_ARG, "vector " + std::to_string(i) + " has " +
                             std::to_string(exchange.sent[i].bytes) + " bytes and the result " +
                             std::to_string(result.bytes) + "; expected as many"};
  }
  exchange.combine(result, given.received.type, given.op);
  for (const int source : neighbourhood.sources) {
    exchange.received.push_back(source == MPI_PROC_NULL ? BlockData{} : result);
  }
  return {};
}

/// Reads the arguments. `info`: of a persistent call.
Wrong read(const Given& given, MPI_Info info, ProgramExchange& exchange) {
  std::shared_ptr<const IsoNeighbourhood> neighbourhood;
  if (Wrong wrong = find_neighbourhood(given.comm, neighbourhood)) return wrong;
  engine::NeighbourHints hints = neighbourhood->plans->hints();
  exchange.plans = neighbourhood->plans;
  if (info != MPI_INFO_NULL) {
    if (Wrong wrong = read_hints(info, hints)) return wrong;
    if (hints != neighbourhood->plans->hints()) {
      exchange.plans = std::make_shared<engine::NeighbourPlans>(
          neighbourhood->list(), neighbourhood->plans->rank(), hints);
    }
  }
  exchange.pattern = given.pattern;
  // One block of an all-gather goes to all.
  static const std::vector<int> all{0};
  const bool is_gather = given.pattern == Pattern::allgather;
  const std::vector<int>& targets = is_gather ? all : neighbourhood->targets;
  if (Wrong wrong = read_blocks(given.sent, targets, exchange, exchange.sent)) return wrong;
  exchange.comm = given.comm;
  if (given.reduces) return read_sum(given, *neighbourhood, exchange);
  if (Wrong wrong =
          read_blocks(given.received, neighbourhood->sources, exchange, exchange.received)) {
    return wrong;
  }
  return read_sizes(given.sent, given.sent.has_arrays || given.received.has_arrays, *neighbourhood,
                    hints, exchange);
}

/// Finds what serves calls on a communicator, if anything does.
Wrong find_job(MPI_Comm comm, engine::Job* job, std::shared_ptr<mpi::CommInfo>& known) {
  if (job) known = mpi::comm_info(comm);
  if (job && engine::may_exchange(*job, known)) return {};
  return {MPI_ERR_OTHER,
          "mpress is not at work on all processes of the communicator (mpress_init, mpress run): "
          "nothing serves the call"};
}

void open(engine::Job& job, ProgramExchange& exchange) {
  exchange.ask(engine::Asking::take());
  exchange.open(job);
  const bool names_stream = exchange.asked && exchange.asked->stream;
  if (!names_stream) exchange.defaults = engine::order_behind_defaults(job, exchange);
}

int blocking(const Given& given) {
  return guarded(given.comm, [&] {
    const Call scope(Kind::collective, given.comm, given.asks,
                     {given.sent.buffer, given.received.buffer});
    if (scope.code() != MPI_SUCCESS) return scope.code();
    ProgramExchange exchange;
    if (Wrong wrong = read(given, MPI_INFO_NULL, exchange)) {
      return raise(given.comm, std::move(wrong));
    }
    engine::Job* const job = engine::enter_blocking_call();
    std::shared_ptr<mpi::CommInfo> comm;
    if (Wrong wrong = find_job(given.comm, job, comm)) return raise(given.comm, std::move(wrong));
    open(*job, exchange);
    return engine::exchange(*job, given.call, comm, exchange);
  });
}

template <typename Begin>
int begun(const Given& given, MPI_Info info, mpress_request* request, Begin begin) {
  return guarded(given.comm, [&] {
    Call scope(Kind::immediate_collective, given.comm, given.asks,
               {given.sent.buffer, given.received.buffer});
    if (scope.code() != MPI_SUCCESS) return scope.code();
    if (!request) return raise(given.comm, is_null("request"));
    ProgramExchange exchange;
    if (Wrong wrong = read(given, info, exchange)) return raise(given.comm, std::move(wrong));
    return api::begin(request, given.asks, scope, [&](MPI_Request* made) {
      engine::Job* const job = engine::enter_call();
      std::shared_ptr<mpi::CommInfo> comm;
      if (Wrong wrong = find_job(given.comm, job, comm)) return raise(given.comm, std::move(wrong));
      open(*job, exchange);
      return begin(*job, comm, std::move(exchange), made);
    });
  });
}

int immediate(const Given& given, mpress_request* request) {
  return begun(given, MPI_INFO_NULL, request,
               [&](engine::Job& job, const std::shared_ptr<mpi::CommInfo>& comm,
                   ProgramExchange exchange, MPI_Request* made) {
                 return engine::begin_exchange(job, given.call, comm, std::move(exchange), made);
               });
}

int persistent(const Given& given, MPI_Info info, mpress_request* request) {
  return begun(given, info, request,
               [&](engine::Job& job, const std::shared_ptr<mpi::CommInfo>& comm,
                   ProgramExchange exchange, MPI_Request* made) {
                 engine::before_blocking(job);
                 const int code =
                     engine::make_exchange(job, given.call, comm, std::move(exchange), made);
                 if (code == MPI_SUCCESS) job.start_streams.note(*made, given.comm);
                 return code;
               });
}

constexpr engine::Collective alltoall_call{trace::Op::iso_alltoall, Family::neighbor};
constexpr engine::Collective alltoallv_call{trace::Op::iso_alltoallv, Family::neighbor};
constexpr engine::Collective alltoallw_call{trace::Op::iso_alltoallw, Family::neighbor};
constexpr engine::Collective allgather_call{trace::Op::iso_allgather, Family::neighbor, false,
                                            true};
constexpr engine::Collective allgatherv_call{trace::Op::iso_allgatherv, Family::neighbor, false,
                                             true};
constexpr engine::Collective allgatherw_call{trace::Op::iso_allgatherw, Family::neighbor, false,
                                             true};
constexpr engine::Collective reduce_call{trace::Op::iso_reduce, Family::neighbor, false, true};
constexpr engine::Collective scatter_reduce_call{trace::Op::iso_scatter_reduce, Family::neighbor};

}  // namespace
}  // namespace mpress::api

using namespace mpress;
using api::Given;

// The three forms of a call: PARAMETERS in parentheses, but for those at the end, and what they
// make a Given of.
#define MPRESS_FORMS(NAME, PARAMETERS, GIVEN)                                                    \
  extern "C" int mpress_iso_neighbor_##NAME(MPRESS_LIST PARAMETERS, MPI_Comm comm,               \
                                            const mpress_call* call) {                           \
    return api::blocking(Given GIVEN);                                                           \
  }                                                                                              \
  extern "C" int mpress_iso_ineighbor_##NAME(MPRESS_LIST PARAMETERS, MPI_Comm comm,              \
                                             mpress_request* request, const mpress_call* call) { \
    return api::immediate(Given GIVEN, request);                                                 \
  }                                                                                              \
  extern "C" int mpress_iso_neighbor_##NAME##_init(MPRESS_LIST PARAMETERS, MPI_Comm comm,        \
                                                   MPI_Info info, mpress_request* request,       \
                                                   const mpress_call* call) {                    \
    return api::persistent(Given GIVEN, info, request);                                          \
  }
#define MPRESS_LIST(...) __VA_ARGS__

MPRESS_FORMS(alltoall,
             (const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
              MPI_Count received_count, MPI_Datatype received_type),
             ({api::alltoall_call,
               engine::Pattern::alltoall,
               {"sent", sent, sent_count, sent_type},
               {"received", received, received_count, received_type},
               comm,
               call}))

MPRESS_FORMS(alltoallv,
             (const void* sent, const MPI_Count sent_counts[], const MPI_Aint sent_displacements[],
              MPI_Datatype sent_type, void* received, const MPI_Count received_counts[],
              const MPI_Aint received_displacements[], MPI_Datatype received_type),
             ({api::alltoallv_call,
               engine::Pattern::alltoall,
               {"sent", sent, 0, sent_type, sent_counts, sent_displacements, nullptr, true},
               {"received", received, 0, received_type, received_counts, received_displacements,
                nullptr, true},
               comm,
               call}))

MPRESS_FORMS(alltoallw,
             (const void* sent, const MPI_Count sent_counts[], const MPI_Aint sent_displacements[],
              const MPI_Datatype sent_types[], void* received, const MPI_Count received_counts[],
              const MPI_Aint received_displacements[], const MPI_Datatype received_types[]),
             ({api::alltoallw_call,
               engine::Pattern::alltoall,
               {"sent", sent, 0, MPI_DATATYPE_NULL, sent_counts, sent_displacements, sent_types,
                true, true},
               {"received", received, 0, MPI_DATATYPE_NULL, received_counts, received_displacements,
                received_types, true, true},
               comm,
               call}))

MPRESS_FORMS(allgather,
             (const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
              MPI_Count received_count, MPI_Datatype received_type),
             ({api::allgather_call,
               engine::Pattern::allgather,
               {"sent", sent, sent_count, sent_type},
               {"received", received, received_count, received_type},
               comm,
               call}))

MPRESS_FORMS(allgatherv,
             (const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
              const MPI_Count received_counts[], const MPI_Aint received_displacements[],
              MPI_Datatype received_type),
             ({api::allgatherv_call,
               engine::Pattern::allgather,
               {"sent", sent, sent_count, sent_type},
               {"received", received, 0, received_type, received_counts, received_displacements,
                nullptr, true},
               comm,
               call}))

MPRESS_FORMS(allgatherw,
             (const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
              const MPI_Count received_counts[], const MPI_Aint received_displacements[],
              const MPI_Datatype received_types[]),
             ({api::allgatherw_call,
               engine::Pattern::allgather,
               {"sent", sent, sent_count, sent_type},
               {"received", received, 0, MPI_DATATYPE_NULL, received_counts, received_displacements,
                received_types, true, true},
               comm,
               call}))

MPRESS_FORMS(reduce,
             (const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op),
             ({api::reduce_call,
               engine::Pattern::allgather,
               {"sent", sent, count, type},
               {"received", received, count, type},
               comm,
               call,
               op,
               true}))

MPRESS_FORMS(scatter_reduce,
             (const void* sent, const MPI_Count sent_counts[], const MPI_Aint sent_displacements[],
              const MPI_Datatype sent_types[], void* received, MPI_Count count, MPI_Datatype type,
              MPI_Op op),
             ({api::scatter_reduce_call,
               engine::Pattern::alltoall,
               {"sent", sent, 0, MPI_DATATYPE_NULL, sent_counts, sent_displacements, sent_types,
                true, true},
               {"received", received, count, type},
               comm,
               call,
               op,
               true}))
