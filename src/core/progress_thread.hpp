// A thread that advances operations, whatever the program does: MPRESS_PROGRESS=thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <thread>

namespace mpress::engine {

class Progress;

/// Sleeps while nothing is under way. MPI has to provide MPI_THREAD_MULTIPLE.
class ProgressThread {
 public:
  explicit ProgressThread(Progress& progress) : progress_(progress) {}
  ~ProgressThread() { stop(); }

  /// False where the system gives no thread.
  bool start();

  /// Ends it; returns when it has ended. While MPI still runs. A child that was forked has none.
  void stop();

 private:
  void run();

  Progress& progress_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
  pid_t process_ = 0;
};

}  // namespace mpress::engine
