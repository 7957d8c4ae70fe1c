/* Messages of devices go both ways without end, and then rank 1 is killed in the middle of one:
 * the job must end. Two ranks; the arguments are the bytes of a message and a folder, in which each
 * rank leaves a file with its process's number for a name. */
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"
#include "simulated_gpu.h"

static void die(int number) {
  (void)number;
  kill(getpid(), SIGKILL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  const int count = atoi(argv[1]) / (int)sizeof(float);
  const size_t bytes = sizeof(float) * (size_t)count;
  char path[4096];
  snprintf(path, sizeof path, "%s/%ld", argv[2], (long)getpid());
  fclose(fopen(path, "w"));
  float* values = malloc(bytes);
  fill_f32(values, count, check_rank);
  float* out = sim_malloc(check_rank % sim_devices, bytes);
  float* in = sim_malloc(check_rank % sim_devices, bytes);
  sim_copy_in(out, values, bytes);
  signal(SIGALRM, die);
  const struct itimerval soon = {.it_value = {.tv_usec = 3000}};
  for (int round = 0;; ++round) {
    if (round == 4 && check_rank == 1) setitimer(ITIMER_REAL, &soon, NULL);
    MPI_Request requests[2];
    MPI_Irecv(in, count, MPI_FLOAT, 1 - check_rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, count, MPI_FLOAT, 1 - check_rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}
