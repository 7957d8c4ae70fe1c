#include "mpi/requests/freed.hpp"

#include <sched.h>

#include <utility>
#include <vector>

#include "mpi/error_handlers.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/immortal.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {
namespace {

constexpr std::uint64_t longest_pause_ns = 1'000'000'000;

/// What MPI may still use when mpress has stopped.
mpi::Immortal<std::vector<std::shared_ptr<Request>>> released;

}  // namespace

bool FreedRequest::advance() {
  if (!entry_->is_ready()) return false;
  MPI_Request stand_in = entry_->stand_in();
  MPI_Request& used = stand_in != MPI_REQUEST_NULL ? stand_in : request_;
  int done = 0;
  MPI_Status status;
  mpi::HeldError error;
  const int code = mpi::test(&used, &done, &status, error);
  if (code == MPI_SUCCESS && !done) return false;
  error.raise_later();
  if (code == MPI_SUCCESS) tell(entry_->finish(job_, status));
  if (request_ != MPI_REQUEST_NULL) mpi::calls().Request_free(&request_);
  return true;
}

void FreedRequest::tell(const Ending& ending) {
  if (ending.raise_on) mpi::raise_later([ending] { ending.raise_on->raise(ending.code); });
}

void FreedRequest::release() {
  entry_->await(true);
  job_.progress.wait_until([this] { return entry_->is_ready() || !entry_->must_end(); });
  if (advance()) return;
  entry_->abandon();
  mpi::calls().Request_free(&request_);
  released->push_back(std::move(entry_));
}

void complete_freed(Job& job, MPI_Request request, std::shared_ptr<Request> entry) {
  entry->follow(job);
  job.progress.add(std::make_shared<FreedRequest>(job, request, std::move(entry)));
}

void release_freed(Job& job) {
  std::uint64_t last_end = trace::now_ns();
  while (!job.progress.idle() && trace::now_ns() - last_end < longest_pause_ns) {
    if (job.progress.advance()) last_end = trace::now_ns();
    ::sched_yield();
  }
  for (const auto& freed : job.progress.take_all<FreedRequest>()) freed->release();
}

}  // namespace mpress::engine
