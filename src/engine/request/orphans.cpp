#include "engine/request/orphans.hpp"

#include <sched.h>

#include <utility>

#include "engine/job.hpp"

namespace mpress::engine {
namespace {

constexpr std::uint64_t patience_ns = 1'000'000'000;

/// Set while this thread looks at orphans: error handlers that call MPI start no second look.
thread_local bool looking = false;

}  // namespace

bool Orphans::pop(Orphan& orphan) {
  std::lock_guard lock(mutex_);
  if (orphans_.empty()) return false;
  orphan = std::move(orphans_.front());
  orphans_.pop_front();
  return true;
}

void Orphans::push(Orphan orphan) {
  std::lock_guard lock(mutex_);
  orphans_.push_back(std::move(orphan));
}

void Orphans::adopt(MPI_Request request, std::unique_ptr<Pending> pending) {
  count_.fetch_add(1, std::memory_order_relaxed);
  push({request, std::move(pending)});
}

/// Whether MPI has finished it, and then it is over. Nobody is left to be told of an error, but
/// the communicator's handler.
bool Orphans::ends(Job& job, Orphan& orphan) {
  Pending& pending = *orphan.pending;
  if (pending.may_be_late(job) && !pending.is_ready(job, orphan.request)) return false;
  int done = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&orphan.request, &done, &status);
  if (code == MPI_SUCCESS && !done) return false;
  if (code == MPI_SUCCESS && pending.staged) pending.staged->conclude(job);
  if (code == MPI_SUCCESS) pending.recall_chunks(job, status);
  if (code == MPI_SUCCESS && orphan.pending->receive) {
    Receive& receive = *orphan.pending->receive;
    const int delivered = receive.deliver(job, status);
    if (receive.must_raise(delivered)) receive.comm()->raise(delivered);
  }
  if (orphan.request != MPI_REQUEST_NULL) mpi::calls().Request_free(&orphan.request);
  if (pending.replaced()) mpi::calls().Request_free(&pending.stand_in);
  return true;
}

void Orphans::look_at(Job& job, std::size_t how_many) {
  if (std::exchange(looking, true)) return;
  Orphan orphan;
  for (; how_many > 0 && pop(orphan); --how_many) {
    if (ends(job, orphan)) {
      count_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      push(std::move(orphan));
    }
  }
  looking = false;
}

void Orphans::release(Job& job) {
  std::uint64_t last_end = trace::now_ns();
  while (!empty() && trace::now_ns() - last_end < patience_ns) {
    const std::size_t before = count_.load(std::memory_order_relaxed);
    reap_all(job);
    if (count_.load(std::memory_order_relaxed) < before) last_end = trace::now_ns();
    ::sched_yield();
  }
  Orphan orphan;
  while (pop(orphan)) {
    Pending& pending = *orphan.pending;
    if (pending.offered) {  // nobody may take it from the program's memory after MPI_Finalize
      while (!pending.offered->advance(job, *pending.row, false)) ::sched_yield();
      if (pending.collect) pending.collect->finish();
      if (pending.send_half != MPI_REQUEST_NULL) mpi::calls().Request_free(&pending.send_half);
    }
    if (pending.is_collecting()) {  // what is announced will come
      while (!ends(job, orphan)) ::sched_yield();
      continue;
    }
    mpi::calls().Request_free(&orphan.request);
    released_.push_back(std::move(orphan));
  }
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace mpress::engine
