// What every program of the tests is linked with: ranks and threads that wait for others by
// sched_yield, as mpress's and MPI's do, sleep once they have done so for a while. Tests run beside
// each other, and who only looks again would take the processors from who is waited for.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { looks = 16, near = 100000, rest = 50000 };  // nanoseconds, but for the former

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int sched_yield(void) {
  static _Thread_local long long last;
  static _Thread_local int in_a_row;
  const int result = (int)syscall(SYS_sched_yield);
  in_a_row = now() - last < near ? in_a_row + 1 : 0;
  if (in_a_row >= looks) {
    const struct timespec time = {0, rest};
    nanosleep(&time, NULL);
  }
  last = now();
  return result;
}
