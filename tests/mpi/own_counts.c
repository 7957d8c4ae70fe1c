/* MPI_Alltoallv of short blocks between devices, where each rank knows the counts of its own pairs
 * alone: uneven ones, pairs with nothing, and from the third call on a rank that has nothing for
 * any, nor gets anything. With the argument "too-long" the last calls bring rank 0 more than it
 * waits for, which is an error there and nowhere else; with "much-kept" most of rank 1's data stays
 * there; with "idle" the last rank never has anything. */
#include "device_memory.h"
#include "simulated_gpu.h"

enum { CALLS = 80, TOO_LONG = 76, MOST = 20000, KEPT = 1000000 };

static int is_idle;

/* Elements from a rank to another. */
static int count_of(int call, int from, int to, int size) {
  const int quiet = is_idle ? size - 1 : call >= 3 ? call % size : -1;
  if (from == quiet || to == quiet || (from + to + call) % 4 == 0) return 0;
  return (from * 7919 + to * 104729 + call * 1299709) % MOST;
}

int main(int argc, char** argv) {
  const int is_too_long = argc > 1 && strcmp(argv[1], "too-long") == 0;
  const int is_kept = argc > 1 && strcmp(argv[1], "much-kept") == 0;
  is_idle = argc > 1 && strcmp(argv[1], "idle") == 0;
  forbid_own_copies();
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
  int size;
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const int rank = check_rank;
  const size_t bytes = ((size_t)size * MOST + (is_kept ? KEPT : 0)) * sizeof(float);
  struct Memory out = memory_on(rank % 2, bytes), in = memory_on(rank % 2, bytes);
  int sent[64], at_sent[64], got[64], at_got[64];
  for (int call = 0; call < CALLS; ++call) {
    const int is_wrong = is_too_long && call >= TOO_LONG;
    memset(in.shadow, 0xA5, bytes);
    put(&in);
    for (int peer = 0; peer < size; ++peer) {
      sent[peer] = is_wrong ? 1000 + rank : count_of(call, rank, peer, size);
      got[peer] = is_wrong ? 1000 + peer : count_of(call, peer, rank, size);
      if (is_wrong && rank == 0 && peer == 1) got[peer] -= 900;
      at_sent[peer] = at_got[peer] = peer * MOST;
      if (is_kept && rank == 1 && peer == 1) {
        sent[peer] = got[peer] = KEPT;
        at_sent[peer] = at_got[peer] = size * MOST;
      }
      fill_f32((float*)out.shadow + at_sent[peer], sent[peer], 64 * rank + peer + call);
    }
    put(&out);
    const int code = MPI_Alltoallv(out.data, sent, at_sent, MPI_FLOAT, in.data, got, at_got,
                                   MPI_FLOAT, MPI_COMM_WORLD);
    int error_class;
    CHECK_MPI(MPI_Error_class(code, &error_class));
    CHECK(error_class == (is_wrong && rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    get(&in);
    for (int peer = 0; peer < size; ++peer) {
      const float* const values = (float*)in.shadow + at_got[peer];
      if (!is_wrong) CHECK(same_f32(values, got[peer], 64 * peer + rank + call));
      for (int i = got[peer]; i < MOST; ++i) {
        CHECK(memcmp(&values[i], "\xA5\xA5\xA5\xA5", sizeof(float)) == 0);
      }
    }
  }
  drop(&out);
  drop(&in);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
