/* Calls with a stream, on simulated GPUs: what the stream was given before is there, and what it is
 * given behind the call finds the result. To be run by 2 ranks. */
#include <mpress/mpress.h>

#include "../mpi/check.h"
#include "simulated_gpu.h"

enum { COUNT = 40000 };
static const size_t bytes = COUNT * sizeof(double);

static double value(int seed, int i) { return (double)(seed + 1) + 1e-6 * (double)i; }

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK_MPI(mpress_init());
  const int device = rank % sim_devices, other = 1 - rank;
  void* const stream = sim_stream_create(device);
  double *field = malloc(bytes), *result = malloc(bytes);
  double* const out = sim_malloc(device, bytes);
  double* const in = sim_malloc(device, bytes);
  mpress_outcome outcome;
  mpress_call call;
  memset(&call, 0, sizeof call);
  call.mask = MPRESS_CALL_SPEC | MPRESS_CALL_STREAM | MPRESS_CALL_OUTCOME;
  call.stream = stream;
  call.outcome = &outcome;
  const char* const specs[] = {"none", "mpc", "szp:abs=1e-3"};
  for (int round = 0; round < 12; ++round) {
    call.spec = specs[round % 3];
    const double bound = round % 3 == 2 ? 1e-3 : 0;
    for (int i = 0; i < COUNT; ++i) field[i] = value(rank + round, i);
    sim_stream_copy(stream, out, field, bytes); /* done late */
    if (round % 2 == 0) {
      CHECK_MPI(mpress_allreduce(out, in, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &call));
    } else {
      mpress_request requests[2];
      CHECK_MPI(
          mpress_irecv(in, COUNT, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[0], &call));
      CHECK_MPI(
          mpress_isend(out, COUNT, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[1], &call));
      CHECK_MPI(mpress_waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    sim_stream_copy(stream, result, in, bytes);
    sim_stream_synchronize(stream);
    for (int i = 0; i < COUNT; ++i) {
      double expected = value(other + round, i);
      if (round % 2 == 0) expected = value(round, i) + value(1 + round, i);
      CHECK(fabs(result[i] - expected) <= bound * (round % 2 == 0 ? size : 1) + 1e-12 * expected);
    }
  }
  /* Each start of persistent calls, messages and a sum that MPI serves, too. */
  mpress_request starts[4];
  call.spec = "mpc";
  double* const sums = sim_malloc(device, 2 * bytes);
  CHECK_MPI(mpress_recv_init(in, COUNT, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &starts[0], &call));
  CHECK_MPI(mpress_send_init(out, COUNT, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &starts[1], &call));
  CHECK_MPI(mpress_allreduce_init(out, sums, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &starts[2],
                                  &call));
  CHECK_MPI(mpress_scan_init(out, sums + COUNT, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                             &starts[3], &call));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < COUNT; ++i) field[i] = value(rank + round, i);
    sim_stream_copy(stream, out, field, bytes); /* done late */
    CHECK_MPI(mpress_startall(4, starts));
    CHECK_MPI(mpress_waitall(4, starts, MPI_STATUSES_IGNORE));
    const double* const found[] = {in, sums, sums + COUNT};
    for (int which = 0; which < 3; ++which) {
      sim_stream_copy(stream, result, found[which], bytes);
      sim_stream_synchronize(stream);
      for (int i = 0; i < COUNT; ++i) {
        const double both = value(round, i) + value(1 + round, i);
        const double expected = which == 0                ? value(other + round, i)
                                : which == 1 || rank == 1 ? both
                                                          : value(round, i);
        CHECK(fabs(result[i] - expected) <= 1e-12 * expected);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (i != 1) CHECK_MPI(mpress_request_free(&starts[i]));
  }
  sim_free(sums);
  /* A relative bound, which the sender's GPU finds itself: what stays on GPUs does not tell it. */
  call.mask &= ~(unsigned)MPRESS_CALL_STREAM;
  call.spec = "szp:rel=1e-4";
  for (int to_host = 0; to_host < 2; ++to_host) {
    for (int i = 0; i < COUNT; ++i) field[i] = value(other, i);
    sim_stream_copy(stream, out, field, bytes);
    sim_stream_synchronize(stream);
    if (rank == 0) {
      CHECK_MPI(mpress_send(out, COUNT, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, &call));
      continue;
    }
    CHECK_MPI(mpress_recv(to_host ? result : in, COUNT, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE, &call));
    if (!to_host) sim_stream_copy(stream, result, in, bytes);
    sim_stream_synchronize(stream);
    CHECK(outcome.served && (!to_host || !isnan(outcome.bound)));
    const double bound = isnan(outcome.bound) ? 1e-4 * 1e-6 * COUNT : outcome.bound;
    CHECK(bound > 0 && bound <= 1.001e-4 * 1e-6 * COUNT);
    for (int i = 0; i < COUNT; ++i) CHECK(fabs(result[i] - value(1, i)) <= bound);
  }
  call.mask |= MPRESS_CALL_STREAM;
  /* A stream that is being captured takes no call, and nothing is sent. */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  sim_stream_capture(stream, 1);
  CHECK(mpress_send(out, COUNT, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &call) != MPI_SUCCESS);
  CHECK(strstr(mpress_error_text(), "call.stream"));
  CHECK(mpress_start(&starts[1]) != MPI_SUCCESS);
  CHECK(strstr(mpress_error_text(), "call.stream"));
  CHECK(mpress_startall(1, &starts[1]) != MPI_SUCCESS);
  CHECK_MPI(mpress_request_free(&starts[1]));
  sim_stream_capture(stream, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  CHECK(!found);
  sim_stream_destroy(stream);
  sim_free(out);
  sim_free(in);
  free(field);
  free(result);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
