#include "gpu/cuda/prior_work.hpp"

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/cuda/driver.hpp"

namespace mpress::gpu {

/// Of a context: events for use again and again, and the stream that tells of the legacy one.
class Marks {
 public:
  /// Those of the current context, which is never forgotten.
  static Marks& of_current();

  CUevent take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        const CUevent event = idle_.back();
        idle_.pop_back();
        return event;
      }
    }
    CUevent made = nullptr;
    if (driver().create_event(&made, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      throw memory::CudaError("an event", cudaErrorMemoryAllocation);
    }
    std::lock_guard lock(mutex_);
    idle_.reserve(++made_);  // so that give_back() needs no memory
    return made;
  }

  void give_back(CUevent event) noexcept {
    std::lock_guard lock(mutex_);
    idle_.push_back(event);
  }

  /// A blocking stream that holds nothing else. An event there waits for the legacy default stream
  /// alone; one on that itself would wait for all blocking streams of the program's.
  CUstream gate() {
    std::lock_guard lock(mutex_);
    if (!gate_ && driver().create_stream(&gate_, CU_STREAM_DEFAULT) != CUDA_SUCCESS) {
      gate_ = nullptr;
      throw memory::CudaError("a stream", cudaErrorMemoryAllocation);
    }
    return gate_;
  }

 private:
  std::mutex mutex_;
  std::vector<CUevent> idle_;
  std::size_t made_ = 0;
  CUstream gate_ = nullptr;
};

namespace {

/// The driver may give a new context the address of one that has ended, but never its number.
struct Context {
  CUcontext address = nullptr;
  unsigned long long number = 0;
  bool operator==(const Context&) const = default;
};

Context current_context() {
  Context context;
  driver().get_current(&context.address);
  const auto get_number = driver().get_context_id;
  if (get_number && get_number(context.address, &context.number) != CUDA_SUCCESS) {
    context.number = 0;
  }
  return context;
}

/// Whether a stream of the current context holds work. A question about the legacy stream would end
/// the capture of a blocking one: then it is not asked.
enum class Held : unsigned char { nothing, work, unknown };

Held held_by(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = driver().is_capturing(stream, &status);
  if (asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return Held::unknown;
  if (asked != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return Held::nothing;
  return driver().query_stream(stream) == CUDA_ERROR_NOT_READY ? Held::work : Held::nothing;
}

/// Adds what the default streams of the current context hold. A query of the legacy one covers all
/// blocking streams, the thread's own default one among them.
void add_defaults(int device, std::shared_ptr<CudaPriorWork>& work) {
  if (held_by(CU_STREAM_LEGACY) == Held::nothing) return;
  try {
    if (!work) work = std::make_shared<CudaPriorWork>(device);
    Marks& marks = Marks::of_current();
    work->add(marks, marks.gate());
    if (held_by(CU_STREAM_PER_THREAD) != Held::nothing) work->add(marks, CU_STREAM_PER_THREAD);
  } catch (const std::exception&) {
    // No memory for an event: the host waits here, also for blocking streams.
    while (held_by(CU_STREAM_LEGACY) == Held::work) std::this_thread::yield();
  }
}

/// The context that a ContextScope has replaced, current for a while after all.
class BackIn {
 public:
  explicit BackIn(CUcontext replaced) {
    driver().get_current(&own_);
    driver().set_current(replaced);
  }
  BackIn(const BackIn&) = delete;
  BackIn& operator=(const BackIn&) = delete;
  ~BackIn() { driver().set_current(own_); }

 private:
  CUcontext own_ = nullptr;
};

}  // namespace

Marks& Marks::of_current() {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::pair<Context, std::unique_ptr<Marks>>>;
  const Context current = current_context();
  std::lock_guard lock(mutex);
  for (const auto& [context, marks] : *all) {
    if (context == current) return *marks;
  }
  return *all->emplace_back(current, std::make_unique<Marks>()).second;
}

CudaPriorWork::~CudaPriorWork() {
  for (std::size_t i = 0; i < number_; ++i) marks_[i].from->give_back(marks_[i].event);
}

State CudaPriorWork::query() const {
  try {
    const ContextScope scope(device_);
    for (std::size_t i = 0; i < number_; ++i) {
      const CUresult found = driver().query_event(marks_[i].event);
      if (found == CUDA_ERROR_NOT_READY) return State::pending;
      if (found != CUDA_SUCCESS) return State::failed;
    }
    return State::done;
  } catch (const std::exception&) {
    return State::failed;
  }
}

void CudaPriorWork::hold_up(cudaStream_t stream) const {
  for (std::size_t i = 0; i < number_; ++i) {
    if (driver().wait_event(stream, marks_[i].event, 0) != CUDA_SUCCESS) {
      throw memory::CudaError("waiting for an event", cudaErrorUnknown);
    }
  }
}

void CudaPriorWork::add(Marks& marks, CUstream stream) {
  const CUevent event = marks.take();
  marks_[number_++] = {&marks, event};
  if (driver().record_event(event, stream) != CUDA_SUCCESS) {
    throw memory::CudaError("recording an event", cudaErrorUnknown);
  }
}

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  memory::check(cudaStreamIsCapturing(stream, &status), "a stream");
  return status != cudaStreamCaptureStatusNone;
}

void prepare_default_work(int device) {
  const ContextScope scope(device);
  Marks::of_current().gate();
}

std::shared_ptr<const PriorWork> work_of(int device, void* stream) {
  try {
    const ContextScope scope(device);
    const auto callers = static_cast<cudaStream_t>(stream);
    if (is_captured(callers)) return nullptr;
    auto work = std::make_shared<CudaPriorWork>(device);
    work->add(Marks::of_current(), callers);
    return work;
  } catch (const std::exception&) {
    cudaGetLastError();
    return nullptr;
  }
}

std::shared_ptr<const PriorWork> default_work(int device) {
  try {
    std::shared_ptr<CudaPriorWork> work;
    const ContextScope scope(device);
    add_defaults(device, work);
    if (scope.replaced()) {
      const BackIn programs(scope.replaced());
      add_defaults(device, work);
    }
    return work;
  } catch (const std::exception&) {
    cudaGetLastError();
    return nullptr;
  }
}

}  // namespace mpress::gpu
