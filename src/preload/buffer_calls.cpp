// Collective calls, blocking, non-blocking and persistent, and those of one process: MPI works on
// host memory in the place of what lies in a device's.

#include "preload/buffer_calls.hpp"

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "coll/collectives.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/collectives/collective.hpp"
#include "mpi/collectives/neighbours/isomorphic_graph.hpp"
#include "mpi/collectives/neighbours/neighbours.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/error_handlers.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/staging/staged_call.hpp"
#include "preload/entered.hpp"
#include "preload/kept_call.hpp"
#include "preload/narrowing.hpp"
#include "preload/rest_of_call.hpp"

namespace mpress::preload {
namespace {

using engine::Form;
using engine::Job;
using engine::Operands;
using engine::StagedCall;
using mpi::BufferCalls;

/// Calls MPI: the same call as the program's, or, where the library lacks that, the one with ints.
/// `own` and `ints` are members of BufferCalls.
template <auto own, auto ints, typename... A>
int call_mpi(StagedCall& staged, const Operands& operands, A... arguments) {
  const auto call = mpi::buffer_calls().*own;
  if constexpr (!std::is_same_v<decltype(own), decltype(ints)>) {
    if (!call) {
      return call_narrowed({staged, operands}, mpi::buffer_calls().*ints,
                           staged.replaced(arguments)...);
    }
  }
  return call(staged.replaced(arguments)...);
}

/// May the call be passed on without a look at its arguments?
template <auto own>
bool passes(const Job* job) {
  return mpi::buffer_calls().*own && !(job && gpu::in_use());
}

/// Tells functions apart by their names: not all compilers take their addresses for constants.
template <auto function>
struct Named;
template <auto one, auto other>
constexpr bool same = std::is_same_v<Named<one>, Named<other>>;

/// What mpress may serve of the calls that a function of mpi/collectives/operands.hpp describes.
template <auto describe>
constexpr engine::Collective collective() {
  namespace collectives = engine::collectives;
  if (same<describe, &engine::alltoall>) return collectives::alltoall;
  if (same<describe, &engine::alltoallv>) return collectives::alltoallv;
  if (same<describe, &engine::alltoallw>) return collectives::alltoallw;
  if (same<describe, &engine::gather>) return collectives::gather;
  if (same<describe, &engine::gatherv>) return collectives::gatherv;
  if (same<describe, &engine::scatter>) return collectives::scatter;
  if (same<describe, &engine::scatterv>) return collectives::scatterv;
  if (same<describe, &engine::allgather>) return collectives::allgather;
  if (same<describe, &engine::allgatherv>) return collectives::allgatherv;
  if (same<describe, &engine::neighbor_alltoall>) return collectives::neighbor_alltoall;
  if (same<describe, &engine::neighbor_alltoallv>) return collectives::neighbor_alltoallv;
  if (same<describe, &engine::neighbor_alltoallw>) return collectives::neighbor_alltoallw;
  if (same<describe, &engine::neighbor_allgather>) return collectives::neighbor_allgather;
  if (same<describe, &engine::neighbor_allgatherv>) return collectives::neighbor_allgatherv;
  if (same<describe, &engine::bcast>) return collectives::bcast;
  if (same<describe, &engine::allreduce>) return collectives::allreduce;
  if (same<describe, &engine::reduce>) return collectives::reduce;
  if (same<describe, &engine::reduce_scatter>) return collectives::reduce_scatter;
  if (same<describe, &engine::reduce_scatter_block>) return collectives::reduce_scatter_block;
  return {};
}

/// What the arguments of a call tell, and what it asks for itself, where mpress may serve it. A
/// persistent call asks for its place behind the program's streams at each start.
template <auto describe, typename... A>
Operands described(Job* job, Form form, A... arguments) {
  Operands operands;
  {
    const mpi::HeldError error;  // the program's call has its own
    operands = describe(arguments...);
  }
  operands.asked = engine::Asking::take();
  if (job && operands.known && form != Form::persistent && gpu::in_use()) {
    operands.defaults = engine::order_behind_defaults(*job, operands);
  }
  return operands;
}

/// Leaves a call to MPI, and counts it, where its name and MPI_Init tell that mpress serves none of
/// these. Returns whether it is still a candidate.
bool admit_or_leave(Job* job, const engine::Collective& call) {
  if (call.op == trace::Op::count_ || !job) return false;
  const bool is_asked =
      engine::Asking::innermost() && (call.reduces || job->collectives.most.any());
  if (job->collectives.any() || is_asked ||
      (call.family == Family::neighbor && engine::has_isomorphic_graphs()) ||
      (call.reduces && engine::may_be_reproducible(*job))) {
    return true;
  }
  job->record.count_left(call.op, engine::why_never(*job, call));
  return false;
}

/// The same of a call that does not block. A reduction that has to be reproducible is a candidate
/// even where nothing lets mpress proceed: engine::candidate_or_leave() then says so.
bool admit_immediate_or_leave(Job* job, const engine::Collective& call) {
  if (!admit_or_leave(job, call)) return false;
  if (job->collectives.immediate) return true;
  const engine::Asked* const asked = engine::Asking::innermost();
  if ((asked && asked->spec) || job->config.force) engine::tell_of_immediate(*job);
  if (call.reduces && engine::may_be_reproducible(*job)) return true;
  job->record.count_left(call.op, engine::nothing_proceeds);
  return false;
}

/// The communicator of a call that the program's promise of its graph has mpress serve. Where a
/// call that does not block cannot make its team, all members know, and MPI serves it.
std::shared_ptr<mpi::CommInfo> on_graph(Job* job, const Operands& operands, Form form) {
  if (!job || !engine::has_isomorphic_graphs()) return nullptr;
  if (job->config.is_disabled(Family::neighbor)) return nullptr;
  auto comm = engine::isomorphic_comm(operands);
  if (!engine::may_exchange(*job, comm)) return nullptr;
  const bool is_late =
      form == Form::immediate && engine::needs_preparation(*job) && !comm->attached();
  return is_late && comm->world_ranks.size() > 1 ? nullptr : comm;
}

/// May MPI not touch memory of devices in such a call, also where it takes that in others? Open
/// MPI, 4.1 and 5.0, has the host work at the buffers of a reduction that does not block, of
/// MPI_Reduce_local and of packing in external32, which ends in a segmentation fault; in an
/// MPI_Reduce_scatter_block in place it takes this rank's first block for all that it contributes.
template <auto describe>
bool is_of_hosts(Form form, const Operands& operands) {
  if (same<describe, &engine::reduce_local> || same<describe, &engine::pack_external> ||
      same<describe, &engine::unpack_external>) {
    return true;
  }
  const bool is_reduction = operands.op != MPI_OP_NULL;
  if (is_reduction && form != Form::blocking) return true;
  return same<describe, &engine::reduce_scatter_block> && operands.receive.reads.number() > 0;
}

/// Opens what stands in for the buffers that MPI must not see.
template <auto describe>
int open(StagedCall& staged, Job& job, Form form, const Operands& operands) {
  return is_of_hosts<describe>(form, operands) ? staged.open_all(job, operands)
                                               : staged.open(job, operands);
}

/// Has MPI made a request? MPICH may return success, and none, once a handler of the program's was
/// called.
bool has_begun(int code, MPI_Request request) {
  return code == MPI_SUCCESS && request != MPI_REQUEST_NULL;
}

/// What the entry points have in common: `describe` is the function of
/// mpi/collectives/operands.hpp, A are the blocking call's parameters.
template <typename Signature>
struct Entries;
template <typename... A>
struct Entries<int(A...)> {
  template <auto describe, auto own, auto ints>
  static int blocking(A... arguments) {
    Job* job = enter_blocking_call();
    constexpr engine::Collective call = collective<describe>();
    const bool is_candidate = admit_or_leave(job, call);
    if (!is_candidate && passes<own>(job) && !engine::Asking::innermost()) {
      return engine::after_blocking(job, (mpi::buffer_calls().*own)(arguments...));
    }
    const Operands operands = described<describe>(job, Form::blocking, arguments...);
    if constexpr (call.family == Family::neighbor) {
      if (const auto comm = on_graph(is_candidate ? job : nullptr, operands, Form::blocking)) {
        return engine::exchange(*job, call, comm, engine::exchange_on_graph(call, operands, *comm));
      }
    }
    if (is_candidate) {
      std::unique_ptr<engine::PairwiseCall> begun;
      const auto served = engine::serve_collective(*job, call, operands, begun);
      if (served) return *served;
      if constexpr (call.has_own_counts) {
        if (begun) return rest_by_mpi<describe, own, ints>(job, *begun, operands, arguments...);
      }
    }
    if (job) {
      if (const int code = engine::await_streams(*job, operands); code != MPI_SUCCESS) return code;
    }
    return by_mpi<describe, own, ints>(job, operands, arguments...);
  }

  /// What pairs leave to MPI. Never inlined, as by_mpi(): callers go deeper without it.
  template <auto describe, auto own, auto ints>
  [[gnu::noinline]] static int rest_by_mpi(Job* job, engine::PairwiseCall& begun,
                                           const Operands& operands, A... arguments) {
    const RestOfCall<A...> rest(begun.pairs(), operands, arguments...);
    return begun.end(std::apply(
        [&](A... left) { return by_mpi<describe, own, ints>(job, describe(left...), left...); },
        rest.arguments()));
  }

  /// MPI's own blocking call.
  template <auto describe, auto own, auto ints>
  [[gnu::noinline]] static int by_mpi(Job* job, const Operands& operands, A... arguments) {
    if (passes<own>(job)) {
      return engine::after_blocking(job, (mpi::buffer_calls().*own)(arguments...));
    }
    StagedCall staged;
    int error = job ? open<describe>(staged, *job, Form::blocking, operands) : MPI_SUCCESS;
    if (job && error == MPI_SUCCESS) error = staged.fetch(*job);
    if (error != MPI_SUCCESS) return error;
    if (job) engine::before_blocking(*job);
    const int code =
        engine::after_blocking(job, call_mpi<own, ints>(staged, operands, arguments...));
    return job && code == MPI_SUCCESS ? staged.conclude(*job) : code;
  }

  template <auto describe, auto own, auto ints>
  static int immediate(A... arguments, MPI_Request* request) {
    Job* job = enter_call();
    constexpr engine::Collective call = collective<describe>();
    const bool is_candidate = admit_immediate_or_leave(job, call);
    if (!is_candidate && passes<own>(job)) {
      return (mpi::buffer_calls().*own)(arguments..., request);
    }
    const Operands operands = described<describe>(job, Form::immediate, arguments...);
    if constexpr (call.op != trace::Op::count_) {
      if constexpr (call.family == Family::neighbor) {
        if (const auto comm = on_graph(is_candidate ? job : nullptr, operands, Form::immediate)) {
          return engine::begin_exchange(*job, call, comm,
                                        engine::exchange_on_graph(call, operands, *comm), request);
        }
      }
      if (is_candidate) {
        const auto candidate = engine::candidate_or_leave(*job, call, Form::immediate, operands);
        constexpr auto call_own = [](StagedCall& staged, const Operands& left, A... given, MPI_Info,
                                     MPI_Request* begun) {
          return call_mpi<own, ints>(staged, left, given..., begun);
        };
        using Stored = Kept<describe, call_own, A...>;
        if (candidate.is_decided_at_once) {
          if (auto found = engine::find_pairs(*job, call, candidate, operands)) {
            auto kept = std::make_unique<Stored>(operands, MPI_INFO_NULL, arguments...);
            return engine::begin_pairwise(*job, call, candidate, std::move(*found), std::move(kept),
                                          request);
          }
        } else if (candidate.comm) {
          auto kept = std::make_unique<Stored>(operands, MPI_INFO_NULL, arguments...);
          return engine::begin_collective(*job, call, candidate, std::move(kept), request);
        }
        if (passes<own>(job)) return (mpi::buffer_calls().*own)(arguments..., request);
      }
    }
    StagedCall staged;
    int error = job ? engine::await_streams(*job, operands) : MPI_SUCCESS;
    if (job && error == MPI_SUCCESS)
      error = open<describe>(staged, *job, Form::immediate, operands);
    if (job && error == MPI_SUCCESS) error = staged.fetch(*job);
    if (error != MPI_SUCCESS) return error;
    *request = MPI_REQUEST_NULL;
    const int code = call_mpi<own, ints>(staged, operands, arguments..., request);
    if (!has_begun(code, *request) || staged.empty()) return code;
    auto kept = std::make_unique<StagedCall>(std::move(staged));
    if (job) return engine::complete_later(*job, std::move(kept), *request);
    kept.release();  // mpress is off: nobody will tell when MPI is done with the arguments
    return code;
  }

  template <auto describe, auto own, auto ints>
  static int persistent(A... arguments, MPI_Info info, MPI_Request* request) {
    const int code = made<describe, own, ints>(arguments..., info, request);
    Job* const job = engine::active_job();
    const MPI_Comm comm = std::get<sizeof...(A) - 1>(std::tie(arguments...));
    if (job && code == MPI_SUCCESS) job->start_streams.note(*request, comm);
    return code;
  }

 private:
  template <auto describe, auto own, auto ints>
  static int made(A... arguments, MPI_Info info, MPI_Request* request) {
    Job* job = enter_blocking_call();
    constexpr engine::Collective call = collective<describe>();
    const bool is_candidate = admit_or_leave(job, call);
    if (!is_candidate && passes<own>(job)) {
      return (mpi::buffer_calls().*own)(arguments..., info, request);
    }
    const Operands operands = described<describe>(job, Form::persistent, arguments...);
    if constexpr (call.op != trace::Op::count_) {
      if constexpr (call.family == Family::neighbor) {
        if (const auto comm = on_graph(is_candidate ? job : nullptr, operands, Form::persistent)) {
          return engine::make_exchange(*job, call, comm,
                                       engine::exchange_on_graph(call, operands, *comm), request);
        }
      }
      if (is_candidate) {
        const auto candidate = engine::candidate_or_leave(*job, call, Form::persistent, operands);
        if (candidate.comm) {
          constexpr auto call_own = [](StagedCall& staged, const Operands& left, A... given,
                                       MPI_Info hints, MPI_Request* made) {
            return call_mpi<own, ints>(staged, left, given..., hints, made);
          };
          using Stored = Kept<describe, call_own, A...>;
          auto kept = std::make_unique<Stored>(operands, info, arguments...);
          const auto made =
              engine::make_collective(*job, call, candidate, std::move(kept), request);
          if (made) return *made;
        }
        if (passes<own>(job)) return (mpi::buffer_calls().*own)(arguments..., info, request);
      }
    }
    StagedCall staged;
    const int error = job ? open<describe>(staged, *job, Form::persistent, operands) : MPI_SUCCESS;
    if (error != MPI_SUCCESS) return error;
    *request = MPI_REQUEST_NULL;
    const int code = call_mpi<own, ints>(staged, operands, arguments..., info, request);
    if (!has_begun(code, *request) || staged.empty()) return code;
    auto kept = std::make_unique<StagedCall>(std::move(staged));
    if (job) {
      engine::keep_persistent(*job, std::move(kept), *request);
    } else {
      kept.release();
    }
    return code;
  }
};

}  // namespace

#define MPRESS_ENTRY(form, Form, describe, own, ints) \
  .own = Entries<mpi::Form>::form<engine::describe, &BufferCalls::own, &BufferCalls::ints>,
#define MPRESS_BOTH_FORMS(form, signature, describe, name)    \
  MPRESS_ENTRY(form, Counts::signature, describe, name, name) \
  MPRESS_ENTRY(form, LargeCounts::signature, describe, name##_c, name)
#define MPRESS_COLLECTIVE(name, immediate_name, describe, ...) \
  MPRESS_BOTH_FORMS(blocking, name, describe, name)            \
  MPRESS_BOTH_FORMS(immediate, name, describe, immediate_name) \
  MPRESS_BOTH_FORMS(persistent, name, describe, name##_init)
#define MPRESS_LOCAL(name, describe, ...) MPRESS_BOTH_FORMS(blocking, name, describe, name)

constinit const BufferCalls staged_calls = {MPRESS_COLLECTIVES(MPRESS_COLLECTIVE)
                                                MPRESS_LOCAL_CALLS(MPRESS_LOCAL)};

}  // namespace mpress::preload
