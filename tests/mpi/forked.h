/* Children that a process starts by fork while messages are under way: they compute, and leave by
 * exit, by _exit or by another program; nobody but their parent hears of it. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHILD_EXITS, CHILD_QUITS, CHILD_BECOMES, CHILD_WAYS };

/* Work that takes memory, as the heap's locks were when the parent was forked. */
static int compute(void) {
  enum { N = 1 << 16 };
  double* values = malloc(N * sizeof *values);
  double sum = 0;
  int runs = 0;
  MPI_Initialized(&runs); /* the most that MPI lets a child ask */
  for (int i = 0; i < N; ++i) values[i] = sqrt((double)i);
  for (int i = 0; i < N; ++i) sum += values[i] * values[i];
  free(values);
  return runs && fabs(sum - 0.5 * N * (N - 1.0)) < 1;
}

static void start_child(int way) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (!compute()) _exit(1);
    if (way == CHILD_EXITS) exit(3);
    if (way == CHILD_QUITS) _exit(3);
    execlp("sh", "sh", "-c", "exit 3", (char*)NULL);
    _exit(1);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}
