#include "engine/orphans.hpp"

#include <utility>

#include "engine/job.hpp"

namespace mpress::engine {

void Orphans::adopt(MPI_Request request, std::unique_ptr<Pending> pending) {
  std::lock_guard lock(mutex_);
  orphans_.push_back({request, std::move(pending)});
  count_.store(orphans_.size(), std::memory_order_relaxed);
}

/// Nobody is left to be told of an error, but the communicator's handler.
void Orphans::finish(Job& job, Orphan& orphan, MPI_Status& status) {
  if (orphan.pending->receive) {
    const int code = orphan.pending->receive->deliver(job, status);
    if (code != MPI_SUCCESS) orphan.pending->receive->comm()->raise(code);
  }
  if (orphan.request != MPI_REQUEST_NULL) link::mpi().Request_free(&orphan.request);
}

void Orphans::reap(Job& job) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < orphans_.size();) {
    int done = 0;
    MPI_Status status;
    const int code = link::mpi().Test(&orphans_[i].request, &done, &status);
    if (code == MPI_SUCCESS && !done) {
      ++i;
      continue;
    }
    if (code == MPI_SUCCESS) finish(job, orphans_[i], status);
    orphans_[i] = std::move(orphans_.back());
    orphans_.pop_back();
  }
  count_.store(orphans_.size(), std::memory_order_relaxed);
}

void Orphans::drain(Job& job) {
  std::lock_guard lock(mutex_);
  for (Orphan& orphan : orphans_) {
    MPI_Status status;
    if (link::mpi().Wait(&orphan.request, &status) == MPI_SUCCESS) finish(job, orphan, status);
  }
  orphans_.clear();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace mpress::engine
