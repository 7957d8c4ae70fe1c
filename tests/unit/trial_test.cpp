// Who serves the calls of a kind: by turns at first, then whoever was faster.

#include "engine/coll/trial.hpp"

#include "check.hpp"

using mpress::engine::Trial;
using mpress::engine::Trials;
using Next = mpress::engine::Trial::Next;

namespace {

/// Makes calls until they are compared; returns how many MPI had.
int make_calls(Trial& trial, std::uint64_t mpi_ns, std::uint64_t mpress_ns) {
  int by_mpi = 0;
  for (;;) {
    const Next next = trial.next(true);
    if (next == Next::compare) return by_mpi;
    CHECK(trial.is_timed());
    const bool by_mpress = next == Next::mpress;
    by_mpi += !by_mpress;
    trial.took(by_mpress, by_mpress ? mpress_ns : mpi_ns);
    mpi_ns += 10;  // the least counts
    mpress_ns += 10;
  }
}

void test_the_faster_one_has_all_that_follows() {
  for (const bool mpress_is_faster : {false, true}) {
    Trial trial;
    const int by_mpi = make_calls(trial, 1000, mpress_is_faster ? 900 : 1100);
    CHECK(by_mpi == 3);
    CHECK(trial.least_ns(false) == 1000);
    trial.decide(trial.least_ns(false), trial.least_ns(true));
    for (int i = 0; i < 20; ++i) {
      CHECK(trial.next(i % 2 == 0) == (mpress_is_faster ? Next::mpress : Next::mpi));
      CHECK(!trial.is_timed());
    }
  }
}

void test_calls_that_do_not_block_wait_for_the_verdict() {
  Trial trial;
  for (int i = 0; i < 50; ++i) CHECK(trial.next(false) == Next::mpi);
  CHECK(!trial.is_timed());
  CHECK(make_calls(trial, 10, 5) == 3);
  CHECK(trial.next(false) == Next::mpi);
  trial.decide(10, 5);
  CHECK(trial.next(false) == Next::mpress);
}

void test_kinds_are_apart() {
  Trials trials;
  using mpress::trace::Op;
  CHECK(&trials.of(Op::alltoall, 1000) == &trials.of(Op::alltoall, 1023));
  CHECK(&trials.of(Op::alltoall, 1000) != &trials.of(Op::alltoall, 1024));
  CHECK(&trials.of(Op::alltoall, 1000) != &trials.of(Op::allgather, 1000));
}

}  // namespace

int main() {
  test_the_faster_one_has_all_that_follows();
  test_calls_that_do_not_block_wait_for_the_verdict();
  test_kinds_are_apart();
  return check::failures != 0;
}
