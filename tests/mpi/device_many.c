/* Reductions of device memory on many communicators, and then messages: each communicator keeps
 * memory for its calls, which must leave some for messages. Two ranks. */
#define FLOATS 100000
#include "device_link.h"
#include "simulated_gpu.h"

/* The first 32 short ones of a communicator are MPI's. */
enum { COMMS = 40, CALLS = 40, SHORT = 1000, MESSAGES = 20 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm comms[COMMS];
  struct Memory from = room_on(rank % sim_devices), to = room_on(rank % sim_devices);
  for (int i = 0; i < COMMS; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int call = 0; call < CALLS; ++call) {
      set_values(&from, SHORT, i);
      CHECK_MPI(MPI_Allreduce(from.data, to.data, SHORT, MPI_FLOAT, MPI_MAX, comms[i]));
      check_values(&to, SHORT, i);
    }
  }
  for (int i = 0; i < MESSAGES; ++i) one_message(&from, i % 2, &to, 1 - i % 2, i);
  for (int i = 0; i < COMMS; ++i) MPI_Comm_free(&comms[i]);
  drop(&from);
  drop(&to);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
