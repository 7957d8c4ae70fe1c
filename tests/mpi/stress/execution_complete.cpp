// The calls that complete requests, or look at them.

#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "execution.hpp"
#include "failure.hpp"

namespace stress {
namespace {

constexpr int no_call = -1;

void expect_empty(const MPI_Status& status) {
  int count = -1;
  expect_equal(status.MPI_SOURCE, MPI_ANY_SOURCE, "MPI_SOURCE of an empty status");
  expect_equal(status.MPI_TAG, MPI_ANY_TAG, "MPI_TAG of an empty status");
  must(MPI_Get_count(&status, MPI_FLOAT, &count), "MPI_Get_count");
  expect_equal(count, 0, "the count of an empty status");
}

}  // namespace

/// One array of requests, which is completed call by call.
class Execution::Completion {
 public:
  Completion(Execution& execution, const Action& action) : e_(execution), action_(action) {
    Random random(action.seed);
    for (int c : action.calls) add(c, true);
    for (int c : action.extras) add(c, false);
    slots_.insert(slots_.end(), action.inactive.begin(), action.inactive.end());
    const bool single = action.method == Method::wait || action.method == Method::test ||
                        action.method == Method::get_status;
    for (int k = single ? 0 : random.below(3); k > 0; --k) slots_.push_back(no_call);
    random.shuffle(slots_);
    for (int c : slots_) {
      requests_.push_back(c == no_call ? MPI_REQUEST_NULL : e_.operation(c).request);
      pending_.push_back(c != no_call && !e_.outcome(c).done);
    }
    statuses_.resize(slots_.size());
    indices_.resize(slots_.size());
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void run() {
    while (targets_ > 0) {
      for (MPI_Status& status : statuses_) status.MPI_ERROR = untouched_error;
      once();
      ++here->steps_done;
      if (targets_ > 0) ::sched_yield();
    }
  }

 private:
  int size() const { return static_cast<int>(slots_.size()); }
  MPI_Status* statuses() { return action_.ignore_status ? MPI_STATUSES_IGNORE : statuses_.data(); }
  MPI_Status* status() { return action_.ignore_status ? MPI_STATUS_IGNORE : statuses_.data(); }

  void add(int c, bool target) {
    if (e_.outcome(c).done) return;
    slots_.push_back(c);
    targets_ += target;
  }

  void once() {
    int flag = 0, index = MPI_UNDEFINED, done = 0, code;
    switch (action_.method) {
      case Method::wait: code = MPI_Wait(&requests_[0], status()); return one(0, code);
      case Method::test:
        code = MPI_Test(&requests_[0], &flag, status());
        if (flag || code != MPI_SUCCESS) one(0, code);
        return;
      case Method::waitall:
        return several(MPI_Waitall(size(), requests_.data(), statuses()), size(), nullptr);
      case Method::testall:
        code = MPI_Testall(size(), requests_.data(), &flag, statuses());
        if (flag || code != MPI_SUCCESS) several(code, size(), nullptr);
        return;
      case Method::waitany:
        code = MPI_Waitany(size(), requests_.data(), &index, status());
        expect(index != MPI_UNDEFINED, "MPI_Waitany found nothing active");
        return one(index, code);
      case Method::testany:
        code = MPI_Testany(size(), requests_.data(), &index, &flag, status());
        if (!flag && code == MPI_SUCCESS) return;
        expect(index != MPI_UNDEFINED, "MPI_Testany found nothing active");
        return one(index, code);
      case Method::waitsome:
        code = MPI_Waitsome(size(), requests_.data(), &done, indices_.data(), statuses());
        expect(done > 0, "MPI_Waitsome completed nothing");
        return several(code, done, indices_.data());
      case Method::testsome:
        code = MPI_Testsome(size(), requests_.data(), &done, indices_.data(), statuses());
        expect(done >= 0, "MPI_Testsome found nothing active");
        return several(code, done, indices_.data());
      default: return look();
    }
  }

  /// One request is over; its status is the first, and leaves the error field alone.
  void one(int i, int code) {
    if (!action_.ignore_status) {
      expect_no_error(statuses_[0], "MPI_ERROR of a single status");
    }
    over(i, code, statuses_[0]);
  }

  void several(int code, int count, const int* indices) {
    const bool errors = code == MPI_ERR_IN_STATUS;
    if (!errors) must(code, name_of(action_.method));
    for (int k = 0; k < count; ++k) {
      const int i = indices ? indices[k] : k;
      const MPI_Status& status = statuses_[static_cast<std::size_t>(k)];
      if (!pending_[static_cast<std::size_t>(i)]) {
        expect(indices == nullptr, "a call told of a request that was not active");
        if (!action_.ignore_status && !errors) expect_empty(status);
        continue;
      }
      if (errors && status.MPI_ERROR == MPI_ERR_PENDING) continue;
      if (!errors && !action_.ignore_status) {
        expect_no_error(status, "MPI_ERROR where nothing failed");
      }
      over(i, errors ? status.MPI_ERROR : MPI_SUCCESS, status);
    }
  }

  /// Request `i` has been completed by MPI.
  void over(int i, int code, const MPI_Status& status) {
    const auto at = static_cast<std::size_t>(i);
    expect(i >= 0 && i < size() && pending_[at], "a request completed that was not active");
    const int c = slots_[at];
    Operation& o = e_.operation(c);
    if (e_.call(c).channel >= 0) {
      expect(requests_[at] == o.request, "completing a persistent request changed its handle");
    } else {
      expect(requests_[at] == MPI_REQUEST_NULL, "a completed request is not null");
    }
    o.request = requests_[at];
    pending_[at] = false;
    const auto& targets = action_.calls;
    targets_ -= std::find(targets.begin(), targets.end(), c) != targets.end();
    e_.finish(c, code, action_.ignore_status ? nullptr : &status);
  }

  /// Looks until something is complete; then its data are there. Completes it after that.
  void look() {
    int flag = 0, index = 0, done = 0;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    switch (action_.method) {
      case Method::get_status_any:
        must(MPI_Request_get_status_any(size(), requests_.data(), &index, &flag, status()),
             "MPI_Request_get_status_any");
        if (flag) seen(index, statuses_[0]);
        return;
      case Method::get_status_some:
        must(MPI_Request_get_status_some(size(), requests_.data(), &done, indices_.data(),
                                         statuses()),
             "MPI_Request_get_status_some");
        for (int k = 0; k < done; ++k) seen(indices_[static_cast<std::size_t>(k)], statuses_[k]);
        return;
      case Method::get_status_all:
        must(MPI_Request_get_status_all(size(), requests_.data(), &flag, statuses()),
             "MPI_Request_get_status_all");
        for (int i = 0; flag && i < size(); ++i) {
          if (pending_[static_cast<std::size_t>(i)]) seen(i, statuses_[i]);
        }
        return;
      default: break;
    }
#else
    static_cast<void>(index), static_cast<void>(done);
#endif
    for (int i = 0; i < size(); ++i) {
      if (!pending_[static_cast<std::size_t>(i)]) continue;
      must(MPI_Request_get_status(requests_[static_cast<std::size_t>(i)], &flag, status()),
           "MPI_Request_get_status");
      if (flag) seen(i, statuses_[0]);
    }
  }

  /// What is seen to be complete can be read, and completes at once.
  void seen(int i, const MPI_Status& status) {
    expect(i >= 0 && i < size() && pending_[static_cast<std::size_t>(i)],
           "a look found a request complete that was not active");
    const int c = slots_[static_cast<std::size_t>(i)];
    const Call& it = e_.call(c);
    const bool plain = it.receive >= 0 && !it.lonely && e_.pool_of(c) < 0 && !it.in.packed;
    if (plain) {
      e_.operation(c).received.fetch();
      e_.check_received(c, e_.message(it.receive), MPI_SUCCESS,
                        action_.ignore_status ? nullptr : &status, e_.operation(c).received.bytes);
    }
    const MPI_Status first = status;
    MPI_Status again;
    must(MPI_Wait(&requests_[static_cast<std::size_t>(i)], &again), "MPI_Wait");
    // MPICH tells the status of a persistent request only once.
    const bool once = it.channel >= 0 && !action_.ignore_status;
    over(i, MPI_SUCCESS, once ? first : again);
  }

  Execution& e_;
  const Action& action_;
  std::vector<int> slots_;
  std::vector<MPI_Request> requests_;
  std::vector<bool> pending_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  int targets_ = 0;
};

void Execution::complete(const Action& action) {
  for (int c : action.calls) {
    if (call(c).lonely) must(MPI_Cancel(&operation(c).request), "MPI_Cancel");
  }
  if (action.method != Method::free) return Completion(*this, action).run();
  const int c = action.calls[0];
  if (outcome(c).done) return;
  must(MPI_Request_free(&operation(c).request), "MPI_Request_free");
  expect(operation(c).request == MPI_REQUEST_NULL, "MPI_Request_free leaves a handle");
  if (call(c).receive < 0 || call(c).lonely) return;
  expect(!operation(c).received.is_on_device(), "a freed receive fills what no look can read");
  await_freed(c);
  outcome(c).done = true;
}

}  // namespace stress
