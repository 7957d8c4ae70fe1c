// What every program of the tests is linked with: ranks and threads that wait for others by
// sched_yield, as mpress's and MPI's do, sleep once they have done so for a while. Tests run beside
// each other, and who only looks again would take the processors from who is waited for.
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int looks = 16;   // before the first rest
constexpr int between = 4;  // rests: some look for what has ended once in many thousand looks
constexpr long long nearby = 100000;  // ns from one look to the next, of those in a row
constexpr long rest = 50000;          // ns

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int sched_yield() noexcept {
  thread_local long long last = 0;
  thread_local int in_a_row = 0;
  const int result = static_cast<int>(syscall(SYS_sched_yield));
  in_a_row = now() - last < nearby ? in_a_row + 1 : 0;
  if (in_a_row >= looks && in_a_row % between == 0) {
    const timespec time{0, rest};
    nanosleep(&time, nullptr);
  }
  last = now();
  return result;
}
