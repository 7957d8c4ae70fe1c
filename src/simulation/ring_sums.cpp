#include "simulation/ring_sums.hpp"

#include "schedule/moves/ring.hpp"

namespace mpress::simulation {
namespace {

/// Writes down the reduce-scatter; returns its rounds.
int add_reduce_scatter(Builder& builder, int size, int rank) {
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  for (int round = 0; round < size - 1; ++round) {
    builder.block((previous + size - round) % size);
    builder.send(next, round);
    builder.block((previous + 2 * size - 1 - round) % size);
    builder.combine(previous, round);
  }
  return size - 1;
}

}  // namespace

Schedule ring_reduce_scatter(const SumTask& task, int rank) {
  Builder builder = builder_of(task, Reduction::reduce_scatter, rank);
  return builder.finish(add_reduce_scatter(builder, task.size, rank));
}

Schedule ring_allreduce(const SumTask& task, int rank) {
  Builder builder = builder_of(task, Reduction::allreduce, rank);
  const int begin = add_reduce_scatter(builder, task.size, rank);
  const Schedule sharing = schedule::ring_allgather({schedule::Op::allgather, task.size}, rank);
  for (const Transfer& transfer : sharing.sends) {
    for (const Block block : sharing.blocks_of(transfer)) builder.block(block);
    builder.send(transfer.peer, begin + transfer.round);
  }
  for (const Transfer& transfer : sharing.receives) {
    for (const Block block : sharing.blocks_of(transfer)) builder.block(block);
    builder.receive(transfer.peer, begin + transfer.round);
  }
  return builder.finish(begin + sharing.rounds);
}

}  // namespace mpress::simulation
