#include "mpi/requests/completion.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/requests/finished_request.hpp"
#include "mpi/requests/scratch.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {
namespace {

using trace::Op;

/// At the end of a blocking call: gives the program's own chunks the time to leave. Gives `code`
/// back. Not in a destructor, as MPI may run callbacks of the program's that throw.
int flushed(Job& job, int code) {
  job.links.channel.outbox.flush();
  job.timings.collect();
  return code;
}

/// A call of MPI's that may block. Operations that need the host, which the last look may have
/// begun, are flushed before.
template <typename Call, typename... Arguments>
int call_blocking(Job& job, Call call, Arguments... arguments) {
  before_blocking(job);
  return call(arguments...);
}

/// Counts a call and how long it blocks, if some request that it waits for is counted.
class WaitTimer {
 public:
  WaitTimer(Job& job, Op op, bool is_counted)
      : job_(job), op_(op), begin_(is_counted ? trace::now_ns() : 0) {}
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

  void stop() {
    if (begin_ == 0) return;
    trace::Row& row = job_.record.row({trace::Direction::complete, op_, trace::any_peer});
    trace::add(row.messages, 1);
    const std::uint64_t end = trace::now_ns();
    trace::add(row.wait_ns, end - begin_);
    trace::note_wait(op_, begin_, end);
  }

 private:
  Job& job_;
  Op op_;
  std::uint64_t begin_;  ///< 0: it is not counted
};

/// The program's statuses, or our own where it ignores them: delivering needs them.
class Statuses {
 public:
  Statuses(int count, MPI_Status* given)
      : own_(given == MPI_STATUSES_IGNORE && count > 0 ? static_cast<std::size_t>(count) : 0),
        used_(given == MPI_STATUSES_IGNORE ? own_.data() : given) {}
  MPI_Status* data() { return used_; }
  MPI_Status& operator[](int i) { return used_[i]; }

 private:
  Scratch<MPI_Status> own_;
  MPI_Status* used_;
};

/// The watched entries of an array of requests, claimed before MPI completes any of them.
class Watched {
 public:
  Watched(Job& job, int count, MPI_Request* requests)
      : job_(job),
        requests_(requests),
        entries_(count > 0 ? static_cast<std::size_t>(count) : 0),
        substituted_(entries_.size()),
        is_hidden_(entries_.size()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Request* entry = entries_[i] = job.requests.claim(requests[i]);
      if (!entry) continue;
      any_ = true;
      are_counted_ = are_counted_ || entry->is_counted();
      // Of one that is followed and not over, another thread may be changing the rest just now.
      const bool is_late = !entry->is_ready();
      substitutes_ = substitutes_ || (!is_late && entry->replaced());
      must_look_ = must_look_ || entry->is_followed() || entry->only_mpress_completes();
      may_be_late_ = may_be_late_ || is_late || (entry->is_active() && entry->may_be_late(job));
      if (job.pacer.active()) entry->note_arrival(requests[i]);
    }
    if (!substitutes_ && !may_be_late_) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) substitute(i);
  }

  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  /// What is not complete stays in the table.
  ~Watched() {
    if (!any_) return;
    if (is_with_mpi_) drop_lost();
    for (Request* entry : entries_) {
      if (!entry) continue;
      entry->await(false);
      RequestTable::release(entry);
    }
  }

  bool any() const { return any_; }
  bool are_counted() const { return are_counted_; }

  /// Lets everything proceed, and hides from MPI those requests whose messages are not all there.
  /// True where none is hidden. `needs_all`: what is offered may be while anything else is missing.
  bool progress(bool needs_all = false) {
    hidden_before_ = std::exchange(hidden_, 0);
    if (!may_be_late_) {
      job_.progress.advance();
      return true;
    }
    const bool alone = !needs_all || hidden_before_ == offered();
    for (Request* entry : entries_) {
      if (!entry) continue;
      entry->follow(job_);
      entry->await(alone);
    }
    job_.progress.advance();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      substitute(i);
      hidden_ += is_hidden_[i];
    }
    return hidden_ == 0;
  }

  /// For calls that wait for all: the same until none is hidden. While no message's data has ever
  /// followed its header this is left to MPI, which waits best; finish() waits for that of the
  /// first.
  void progress_all() {
    if (!must_look_ && !job_.expects_data()) return;
    job_.progress.wait_until([&] { return progress(true); });
  }

  /// What to give to MPI: the program's array, or one with stand-ins and without what is hidden.
  MPI_Request* requests() {
    is_with_mpi_ = true;
    return substitutes_ || may_be_late_ ? substituted_.data() : requests_;
  }

  /// After a call that should wait for one request: has it found none because all that are left
  /// are hidden? `found` is MPI_UNDEFINED where it found none.
  bool must_go_on(int code, int found) {
    if (code != MPI_SUCCESS || found != MPI_UNDEFINED || hidden_ == 0) return false;
    backoff_.pause();
    return true;
  }

  /// After MPI's call: the program sees what became of its own requests.
  void restore() {
    is_with_mpi_ = false;
    if (!substitutes_ && !may_be_late_) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (is_hidden_[i] || (entries_[i] && entries_[i]->replaced())) continue;
      requests_[i] = substituted_[i];
    }
  }

  /// The work of request `i`, which MPI has completed without error. Returns an error code.
  int finish(int i, MPI_Status& status) {
    Request* const entry = entries_[static_cast<std::size_t>(i)];
    if (!entry || !entry->is_active()) {
      release(i);
      return MPI_SUCCESS;
    }
    const Ending ending = entry->finish(job_, status);
    if (ending.raise_on) failed_on_ = ending.raise_on;
    release(i);
    return ending.code;
  }

  /// See Request::is_aside().
  bool is_aside(int i) const {
    const Request* const entry = entries_[static_cast<std::size_t>(i)];
    return entry && entry->is_active() && entry->is_aside();
  }

  /// Forgets request `i`, which MPI ended with an error.
  void drop(int i) { release(i); }

  /// Raises `code` on the communicator where delivering failed; not where MPI has told of all that
  /// failed.
  int raise(int code) const { return failed_on_ ? failed_on_->raise(code) : code; }

 private:
  /// Request `i` is over: its entry leaves the table, or, where persistent, becomes inactive.
  void release(int i) {
    Request* const entry = std::exchange(entries_[static_cast<std::size_t>(i)], nullptr);
    if (!entry) return;
    if (!entry->is_persistent()) {
      job_.requests.remove(entry);
      return;
    }
    if (entry->is_active()) entry->end_round();
    RequestTable::release(entry);
  }

  /// A callback of the program's has thrown out of MPI's call: forgets what that has completed.
  void drop_lost() {
    restore();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Request* const entry = entries_[i];
      if (entry && !entry->is_persistent() && requests_[i] == MPI_REQUEST_NULL) {
        release(static_cast<int>(i));
      }
    }
  }

  /// Of those that are hidden, how many give their receivers time?
  int offered() const {
    return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [](Request* entry) {
      return entry && !entry->is_ready() && entry->is_offered();
    }));
  }

  void substitute(std::size_t i) {
    is_hidden_[i] = entries_[i] && !entries_[i]->is_ready();
    substituted_[i] = is_hidden_[i] ? MPI_REQUEST_NULL : real(i);
  }

  /// What to give to MPI for request `i`.
  MPI_Request real(std::size_t i) const {
    const bool replaced = entries_[i] && entries_[i]->replaced();
    return replaced ? entries_[i]->stand_in() : requests_[i];
  }

  Job& job_;
  MPI_Request* requests_;
  Scratch<Request*> entries_;  ///< null where MPI's completion needs no work
  Scratch<MPI_Request> substituted_;
  Scratch<bool> is_hidden_;
  bool any_ = false;
  bool are_counted_ = false;
  bool substitutes_ = false;  ///< some request has a stand-in
  bool may_be_late_ = false;  ///< some message's data may follow its header
  bool must_look_ = false;    ///< some request MPI cannot complete by itself
  bool is_with_mpi_ = false;  ///< its call has not returned
  int hidden_ = 0;            ///< requests, of messages that are not all there
  int hidden_before_ = -1;    ///< the same when it was looked at before
  Backoff backoff_;
  std::shared_ptr<mpi::CommInfo> failed_on_;
};

/// Finishes the requests that MPI completed: the first `count`, or those that `indices` lists.
/// `code` is what MPI's call returned.
int finish_listed(Watched& watched, int count, const int* indices, Statuses& statuses, int code) {
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  const bool have_errors = code == MPI_ERR_IN_STATUS;
  bool failed = false;
  const auto finish = [&](int k, int i) {
    if (have_errors && statuses[k].MPI_ERROR == MPI_ERR_PENDING) return;
    if (have_errors && statuses[k].MPI_ERROR != MPI_SUCCESS) return watched.drop(i);
    const int result = watched.finish(i, statuses[k]);
    if (result == MPI_SUCCESS) return;
    // MPI sets the error fields only where some request failed: now one has.
    if (!have_errors && !failed) {
      for (int j = 0; j < count; ++j) statuses[j].MPI_ERROR = MPI_SUCCESS;
    }
    failed = true;
    statuses[k].MPI_ERROR = result;
  };
  std::vector<int> aside;
  for (int k = 0; k < count; ++k) {
    const int i = indices ? indices[k] : k;
    if (watched.is_aside(i)) {
      aside.push_back(k);
    } else {
      finish(k, i);
    }
  }
  for (const int k : aside) finish(k, indices ? indices[k] : k);
  // One call raises one error, and what MPI's call returned it has raised.
  return failed && !have_errors ? watched.raise(MPI_ERR_IN_STATUS) : code;
}

/// Finishes the one request that MPI completed.
int finish_one(Watched& watched, int i, MPI_Status& status, int code) {
  if (code != MPI_SUCCESS) {
    watched.drop(i);
    return code;
  }
  const int result = watched.finish(i, status);
  return result == MPI_SUCCESS ? code : watched.raise(result);
}

}  // namespace

int wait(Job& job, MPI_Request* request, MPI_Status* status) {
  Watched watched(job, 1, request);
  if (!watched.any()) {
    return flushed(job, call_blocking(job, mpi::calls().Wait, request, status));
  }
  Statuses statuses(1, status);
  WaitTimer timer(job, Op::wait, watched.are_counted());
  watched.progress_all();
  const int code = call_blocking(job, mpi::calls().Wait, watched.requests(), statuses.data());
  watched.restore();
  timer.stop();
  return flushed(job, finish_one(watched, 0, statuses[0], code));
}

int waitall(Job& job, int count, MPI_Request* requests, MPI_Status* given, Op op) {
  Watched watched(job, count, requests);
  if (!watched.any()) {
    return flushed(job, call_blocking(job, mpi::calls().Waitall, count, requests, given));
  }
  Statuses statuses(count, given);
  WaitTimer timer(job, op, watched.are_counted());
  watched.progress_all();
  const int code =
      call_blocking(job, mpi::calls().Waitall, count, watched.requests(), statuses.data());
  watched.restore();
  timer.stop();
  return flushed(job, finish_listed(watched, count, nullptr, statuses, code));
}

int waitany(Job& job, int count, MPI_Request* requests, int* index, MPI_Status* status) {
  Watched watched(job, count, requests);
  if (!watched.any()) {
    return flushed(job, call_blocking(job, mpi::calls().Waitany, count, requests, index, status));
  }
  Statuses statuses(1, status);
  WaitTimer timer(job, Op::waitany, watched.are_counted());
  int code = MPI_SUCCESS;
  do {
    *index = MPI_UNDEFINED;  // and so it stays where MPI refuses an argument
    if (watched.progress()) {
      code = call_blocking(job, mpi::calls().Waitany, count, watched.requests(), index,
                           statuses.data());
    } else {
      int flag = 0;
      code = mpi::calls().Testany(count, watched.requests(), index, &flag, statuses.data());
    }
    watched.restore();
  } while (watched.must_go_on(code, *index));
  timer.stop();
  return flushed(job,
                 *index == MPI_UNDEFINED ? code : finish_one(watched, *index, statuses[0], code));
}

int waitsome(Job& job, int count, MPI_Request* requests, int* done, int* indices,
             MPI_Status* given) {
  Watched watched(job, count, requests);
  if (!watched.any()) {
    return flushed(
        job, call_blocking(job, mpi::calls().Waitsome, count, requests, done, indices, given));
  }
  Statuses statuses(count, given);
  WaitTimer timer(job, Op::waitsome, watched.are_counted());
  int code = MPI_SUCCESS;
  do {
    *done = MPI_UNDEFINED;
    if (watched.progress()) {
      code = call_blocking(job, mpi::calls().Waitsome, count, watched.requests(), done, indices,
                           statuses.data());
    } else {
      code = mpi::calls().Testsome(count, watched.requests(), done, indices, statuses.data());
    }
    watched.restore();
  } while (watched.must_go_on(code, *done > 0 ? *done : MPI_UNDEFINED));
  timer.stop();
  return flushed(
      job, *done == MPI_UNDEFINED ? code : finish_listed(watched, *done, indices, statuses, code));
}

int test(Job& job, MPI_Request* request, int* flag, MPI_Status* status) {
  Watched watched(job, 1, request);
  if (!watched.any()) return mpi::calls().Test(request, flag, status);
  Statuses statuses(1, status);
  *flag = 0;
  if (!watched.progress()) return MPI_SUCCESS;
  const int code = mpi::calls().Test(watched.requests(), flag, statuses.data());
  watched.restore();
  return code == MPI_SUCCESS && !*flag ? code : finish_one(watched, 0, statuses[0], code);
}

int testall(Job& job, int count, MPI_Request* requests, int* flag, MPI_Status* given) {
  Watched watched(job, count, requests);
  if (!watched.any()) return mpi::calls().Testall(count, requests, flag, given);
  Statuses statuses(count, given);
  *flag = 0;
  if (!watched.progress()) return MPI_SUCCESS;
  const int code = mpi::calls().Testall(count, watched.requests(), flag, statuses.data());
  watched.restore();
  return code == MPI_SUCCESS && !*flag ? code
                                       : finish_listed(watched, count, nullptr, statuses, code);
}

int testany(Job& job, int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Watched watched(job, count, requests);
  if (!watched.any()) return mpi::calls().Testany(count, requests, index, flag, status);
  Statuses statuses(1, status);
  *index = MPI_UNDEFINED;
  const bool all_shown = watched.progress();
  const int code = mpi::calls().Testany(count, watched.requests(), index, flag, statuses.data());
  watched.restore();
  if (code == MPI_SUCCESS && *index == MPI_UNDEFINED && !all_shown) *flag = 0;
  if (*index == MPI_UNDEFINED || (code == MPI_SUCCESS && !*flag)) return code;
  return finish_one(watched, *index, statuses[0], code);
}

int testsome(Job& job, int count, MPI_Request* requests, int* done, int* indices,
             MPI_Status* given) {
  Watched watched(job, count, requests);
  if (!watched.any()) return mpi::calls().Testsome(count, requests, done, indices, given);
  Statuses statuses(count, given);
  *done = MPI_UNDEFINED;
  const bool all_shown = watched.progress();
  const int code = mpi::calls().Testsome(count, watched.requests(), done, indices, statuses.data());
  watched.restore();
  if (code == MPI_SUCCESS && *done == MPI_UNDEFINED && !all_shown) *done = 0;
  return *done == MPI_UNDEFINED ? code : finish_listed(watched, *done, indices, statuses, code);
}

}  // namespace mpress::engine
