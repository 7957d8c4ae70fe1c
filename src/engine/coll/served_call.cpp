#include "engine/coll/served_call.hpp"

#include <algorithm>
#include <utility>

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

ServedCall::ServedCall(Job& job, const Collective& call, const Operands& operands,
                       mpi::CommInfo& comm, Context& context, std::uint32_t tag,
                       const LongPairs* pairs)
    : job_(job),
      call_(call),
      comm_(comm),
      context_(context),
      tag_(tag),
      keeps_tag_(tag >= CallOrder::call_tags),
      pairs_(pairs),
      blocks_(job, call, operands, context.rank(), context.hosts()) {}

void ServedCall::start() {
  code_ = MPI_SUCCESS;
  if (const mpi::Hints hints = comm_.hints.get(); !hints.empty()) {
    if (const auto blocks = mpi::comm_info(context_.comm())) blocks->hints.update(hints);
  }
  begin();
}

/// Unless another call has its tag.
bool ServedCall::begin() {
  if (!keeps_tag_ && !context_.order().take(tag_)) return false;
  open();
  return true;
}

void ServedCall::open() {
  // Who fails here still takes part: others wait for blocks.
  const int opened = blocks_.open();
  if (!schedule_ && pairs_) schedule_ = pairs_->schedule(blocks_.task(), context_, window);
  if (!schedule_) {
    const schedule::Hosts& hosts = context_.hosts();
    schedule_ = hosts.count() > 1 ? between_hosts(blocks_.task(), context_.rank(), hosts)
                                  : flat(blocks_.task(), context_.rank());
  }
  const int tag = context_.first_block_tag() + static_cast<int>(tag_);
  is_run_ = false;
  has_copied_ = pairs_ != nullptr;
  looks_ = 0;
  runner_.emplace(job_, call_, context_, tag, *schedule_, blocks_, opened);
  runner_->await(is_awaited_);
}

void ServedCall::await(bool is_awaited) {
  is_awaited_ = is_awaited;
  if (runner_) runner_->await(is_awaited);
}

/// Behind what others wait for, and what has come: to give a device work takes as long as a short
/// block does.
void ServedCall::start_own_copy() {
  constexpr int looks_in_vain = 8;
  if (has_copied_ || !(is_run_ || runner_->is_coming() || ++looks_ > looks_in_vain)) return;
  has_copied_ = true;
  if (!runner_->has_own_by_decoder()) blocks_.start_own_copy();
}

bool ServedCall::advance() {
  if (!runner_ && !begin()) return false;
  if (!is_run_) is_run_ = runner_->advance();
  start_own_copy();
  const bool has_own = has_copied_ && blocks_.is_own_copied() && runner_->advance_own();
  if (!is_run_ || !has_own) return false;
  code_ = runner_->code();
  runner_.reset();
  if (code_ == MPI_SUCCESS) code_ = blocks_.close();
  if (!keeps_tag_) context_.order().give(tag_);
  return true;
}

void wait_for(Job& job, ServedCall& served) {
  served.await(true);
  job.progress.wait_until([&] {
    if (served.advance()) return true;
    served.wait_in_mpi();
    return false;
  });
}

void count_blocking(Job& job, trace::Op op, std::uint64_t begin_ns) {
  trace::Row& row = job.record.row({trace::Direction::complete, op, trace::any_peer});
  trace::add(row.messages, 1);
  const std::uint64_t end = trace::now_ns();
  trace::add(row.wait_ns, end - begin_ns);
  trace::note_wait(op, begin_ns, end);
  job.mpi_link.outbox.flush();
  job.timings.collect(job);
}

}  // namespace mpress::engine
