/* The program's own generalized requests beside messages, and MPI_T, which MPI serves before it is
 * initialised and after it is finalised. */
#include "check.h"

enum { N = 2000 };

static int freed = 0;

static int query(void* state, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_INT, *(int*)state);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 3;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}

static int release(void* state) {
  (void)state;
  ++freed;
  return MPI_SUCCESS;
}

static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  static float out[N], in[N];
  int rank, size, provided, variables, index, count, state = 7;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
  CHECK(MPI_T_cvar_get_num(&variables) == MPI_SUCCESS && variables >= 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  fill_f32(out, N, rank);
  MPI_Irecv(in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD, &requests[0]);
  CHECK_MPI(MPI_Grequest_start(query, release, cancel, &state, &requests[1]));
  MPI_Isend(out, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &requests[2]);
  CHECK_MPI(MPI_Test(&requests[1], &index, &statuses[1]));
  CHECK(!index && freed == 0);
  MPI_Grequest_complete(requests[1]);
  CHECK_MPI(MPI_Waitall(3, requests, statuses));
  MPI_Get_count(&statuses[0], MPI_FLOAT, &count);
  CHECK(count == N && same_f32(in, N, previous));
  MPI_Get_count(&statuses[1], MPI_INT, &count);
  CHECK(count == 7 && statuses[1].MPI_SOURCE == 3 && statuses[1].MPI_TAG == 4 && freed == 1);
  MPI_Finalize();
  CHECK(MPI_T_cvar_get_num(&count) == MPI_SUCCESS && count >= variables);
  MPI_T_finalize();
  if (rank == 0) puts("ok");
  return 0;
}
