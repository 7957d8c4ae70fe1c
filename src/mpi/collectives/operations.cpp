#include "mpi/collectives/operations.hpp"

#include <utility>

#include "coll/algorithm.hpp"
#include "mpi/collectives/agreed.hpp"
#include "mpi/collectives/operand_blocks.hpp"
#include "mpi/collectives/reduction.hpp"
#include "mpi/job/job.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

CallHere call_here(Job& job, const Operands& operands, Team& team, AgreedCall agreed) {
  const auto address = [](const void* buffer) { return buffer == MPI_BOTTOM ? nullptr : buffer; };
  const bool reduces = agreed.call.reduces;
  CallHere here{.messaging = job, .team = team, .agreed = std::move(agreed)};
  here.sent = sent_blocks(operands);
  here.received = received_blocks(operands);
  here.send_buffer = address(operands.send.buffer);
  here.receive_buffer = address(operands.receive.buffer);
  here.topology = operands.topology;
  if (reduces) here.reduction = reduction_of(operands);
  here.results = const_cast<void*>(operands.receive.buffer);
  here.spec = spec_of(job, operands, team);
  const std::optional<Asked>& asked = operands.asked;
  const bool has_same_bits = asked && asked->same_bits && !operands.topology;
  if (asked && (asked->spec || has_same_bits)) {
    here.coding = Coding{.spec = here.spec, .is_for_root_too = has_same_bits};
  }
  return here;
}

std::unique_ptr<CollectiveOperation> make_pairs_operation(Job& job, const Collective& call,
                                                          const Operands& operands, Team& team,
                                                          const Served& served,
                                                          const LongPairs& pairs) {
  CallHere here = call_here(job, operands, team, agreed_call(call, operands, {}));
  here.pairs = &pairs;
  return algorithm(served.algorithm).make(here, served);
}

Spec spec_of(const Job& job, const Operands& operands, const Team& team) {
  if (operands.asked && operands.asked->spec) return *operands.asked->spec;
  return spec_of(job.config, team);
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
