// A thread that advances operations, whatever the program does: MPRESS_PROGRESS=thread.
#pragma once

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

  /// Ends it; returns when it has ended. While MPI still runs.
  void stop();

 private:
  void run();

  Progress& progress_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace mpress::engine
