#include "mpi/collectives/operations.hpp"

#include "mpi/collectives/blocks/served_call.hpp"
#include "mpi/collectives/makers.hpp"
#include "mpi/collectives/neighbours/along_edges.hpp"
#include "mpi/job/job.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

std::unique_ptr<CollectiveOperation> make_operation(Job& job, const Collective& call,
                                                    const Operands& operands, Team& team,
                                                    const Served& served) {
  return maker(served.algorithm).make({job, call, operands, team}, served);
}

std::unique_ptr<CollectiveOperation> make_pairs_operation(Job& job, const Collective& call,
                                                          const Operands& operands, Team& team,
                                                          const Served& served,
                                                          const LongPairs& pairs) {
  if (operands.topology) {
    Served beside = served;
    beside.is_blocking = false;
    return along_edges(job, call, operands, team, beside, &pairs);
  }
  return std::make_unique<ServedCall>(job, call, operands, team, served, &pairs);
}

Spec spec_of(const Job& job, const Operands& operands, const Team& team) {
  if (operands.asked && operands.asked->spec) return *operands.asked->spec;
  return team.hints().spec().value_or(job.config.spec);
}

void tell_outcome(const std::optional<Asked>& asked, const CollectiveOperation& operation) {
  if (!asked || !asked->outcome) return;
  *asked->outcome = {true, operation.bound()};
}

void wait_for(Job& job, CollectiveOperation& operation) {
  operation.await(true);
  job.progress.wait_until([&] {
    // MPI has given the processor to others while it waited.
    do {
      if (operation.advance()) return true;
    } while (operation.wait());
    return false;
  });
}

void count_blocking(Job& job, trace::Called called, std::uint64_t begin_ns) {
  trace::Row& row = job.record.row({trace::Direction::complete, called, trace::any_peer});
  trace::add(row.messages, 1);
  const std::uint64_t end = trace::now_ns();
  trace::add(row.wait_ns, end - begin_ns);
  trace::note_wait(called, begin_ns, end);
  job.links.channel.outbox.flush();
  job.timings.collect();
}

}  // namespace mpress::engine
