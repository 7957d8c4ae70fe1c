#include "gpu/cuda/queue.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"
#include "gpu/cuda/combine.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/joint/joint.hpp"
#include "gpu/cuda/joint/joint_move.hpp"
#include "gpu/cuda/joint/joint_sum.hpp"
#include "gpu/cuda/prior_work.hpp"

namespace mpress::gpu {
namespace {

using memory::check;

/// Enough for messages of hundreds of megabytes, so that encoding needs no memory of its own.
constexpr std::size_t first_workspace = 1 << 20;

/// Reports that nobody asked for are dropped beyond this many.
constexpr std::size_t most_reports = 4096;

/// A query costs more than many looks at a flag; it finds work that failed.
constexpr std::uint32_t looks_a_query = 4096;

}  // namespace

CudaQueue::CudaQueue(int device, Priority priority) : device_(device), priority_(priority) {
  load_kernels(device);
  const ContextScope scope(device);
  try {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
    const int own = priority == Priority::first ? greatest : std::min(greatest + 1, least);
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, own), "a stream");
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(Mapped), cudaHostAllocMapped | cudaHostAllocPortable),
          "pinned memory");
    mapped_ = static_cast<Mapped*>(memory);
    *mapped_ = {};
    check(cudaHostGetDevicePointer(&memory, mapped_, 0), "mapped memory");
    mapped_device_ = static_cast<Mapped*>(memory);
    int as_is = 0;
    maps_as_is_ = cudaDeviceGetAttribute(&as_is, cudaDevAttrCanUseHostPointerForRegisteredMem,
                                         device) == cudaSuccess &&
                  as_is != 0;
    // Drivers may have the function and refuse it.
    const auto wait_value = driver().wait_value;
    can_wait_ =
        wait_value && wait_value(stream_, reinterpret_cast<CUdeviceptr>(&mapped_device_->done), 0,
                                 CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
    counters_ = memory::DeviceBuffer(device, sizeof(Tell::Counters), stream_);
    check(cudaMemsetAsync(counters_.data(), 0, counters_.bytes(), stream_), "counters");
    workspace(first_workspace);
  } catch (...) {
    counters_.reset();
    workspace_.reset();
    if (mapped_) cudaFreeHost(mapped_);
    if (stream_) cudaStreamDestroy(stream_);
    cudaGetLastError();
    throw;
  }
}

CudaQueue::~CudaQueue() {
  try {
    const ContextScope scope(device_);
    cudaStreamSynchronize(stream_);
    if (telling_) {
      cudaStreamSynchronize(telling_);
      cudaStreamDestroy(telling_);
    }
    if (order_) cudaEventDestroy(order_);
    counters_.reset();
    workspace_.reset();
    for (const Upload& upload : uploads_) cudaFreeHost(upload.runs);
    cudaFreeHost(mapped_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  } catch (const std::exception&) {
    // The device is lost, and all of this with it.
  }
}

/// Pieces of work: whatever cannot be enqueued fails, and what comes after it in the queue too.
/// `enqueue` is called with the event of the first.
template <class Enqueue>
Event CudaQueue::give(Enqueue enqueue, std::size_t pieces) {
  const Event event = given_ + 1;
  given_ += pieces;
  if (is_failed(event)) return event;
  try {
    const ContextScope scope(device_);
    enqueue(event);
  } catch (const std::exception&) {
    fail(event);
  }
  return event;
}

CudaQueue::ReportPlace::ReportPlace(Report* published) : at_(published) {
  if (published) {
    __atomic_store_n(&published->sequence, 0, __ATOMIC_RELEASE);
  } else {
    at_ = new (own_.emplace().data()) Report;
  }
}

/// Where a codec reports on a piece of work, as the device sees it.
Report* CudaQueue::report_of(Event event, Report* published) {
  while (reports_.size() >= most_reports && reports_.begin()->first <= done_) {
    reports_.erase(reports_.begin());
  }
  const auto [place, is_new] = reports_.try_emplace(event, published);
  Report* const at = place->second.get();
  return published ? as_mapped(at) : at;
}

/// Memory from Gpu::map() as the device sees it.
template <class T>
T* CudaQueue::as_mapped(T* memory) const {
  if (maps_as_is_) return memory;
  void* mapped = nullptr;
  auto* const at = const_cast<std::remove_const_t<T>*>(memory);
  check(cudaHostGetDevicePointer(&mapped, at, 0), "mapped memory");
  return static_cast<T*>(mapped);
}

/// To an address of the device's, once all work so far is done. The driver fences first, as
/// __threadfence_system() does, and for all that the stream has done.
void CudaQueue::write_value(std::uint32_t* flag, std::uint32_t value, cudaStream_t stream) {
  const auto address = reinterpret_cast<CUdeviceptr>(flag);
  const auto write = driver().write_value;
  if (write && write(stream, address, value, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS) {
    return;
  }
  check(write_flag(flag, value, stream), "a flag");
}

/// Before what the program gives by default, and of another priority than any queue: streams of one
/// share channels of the device, in which one that waits holds up the others.
void CudaQueue::open_telling() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
  check(
      cudaStreamCreateWithPriority(&telling_, cudaStreamNonBlocking, std::min(greatest + 2, least)),
      "a stream");
}

/// Tells the host when all work so far is done.
void CudaQueue::mark(Event event) {
  write_value(&mapped_device_->done, static_cast<std::uint32_t>(event));
}

Event CudaQueue::copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  return give([&](Event event) {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
    // Whoever finds this done takes what was given before it for done, with its flags.
    if (goes_ahead_) order(telling_, stream_);
    goes_ahead_ = false;
    if (flag) write_value(as_mapped(flag), 1);
    mark(event);
  });
}

/// Written by stream_ itself, a flag would hold up the next copy for 5 us.
Event CudaQueue::copy_ahead(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) {
  return give([&](Event event) {
    if (!telling_) open_telling();
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
    if (!std::exchange(goes_ahead_, true)) first_ahead_ = event;
    last_ahead_ = event;
    order(stream_, telling_);
    if (flag) write_value(as_mapped(flag), 1, telling_);
    write_value(&mapped_device_->told, static_cast<std::uint32_t>(event), telling_);
  });
}

Event CudaQueue::write(std::uint32_t* flag, std::uint32_t value) {
  return give([&](Event event) {
    write_value(as_mapped(flag), value);
    mark(event);
  });
}

Event CudaQueue::wait(const std::uint32_t* flag, std::uint32_t value) {
  return give([&](Event event) {
    // No CU_STREAM_WAIT_VALUE_FLUSH: writers see to it that what they wrote has arrived before they
    // write the flag.
    const auto address = reinterpret_cast<CUdeviceptr>(as_mapped(flag));
    if (!can_wait_ ||
        driver().wait_value(stream_, address, value, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
      throw memory::CudaError("waiting for a flag", cudaErrorNotSupported);
    }
    mark(event);
  });
}

/// For a kernel that tells by itself when it is done: no work behind it has to.
Tell CudaQueue::tell(Event event, std::uint32_t* flag) const {
  return {reinterpret_cast<Tell::Counters*>(counters_.data()), &mapped_device_->done,
          static_cast<std::uint32_t>(event), flag ? as_mapped(flag) : nullptr};
}

Event CudaQueue::copy_near(std::span<const Copy> copies, std::uint32_t* flag) {
  return give(
      [&](Event event) { check(copy_and_tell(copies, tell(event, flag), stream_), "a copy"); });
}

Event CudaQueue::gather(void* packed, const void* buffer, const Runs& runs) {
  return give([&](Event event) {
    move_runs(Direction::gather, const_cast<void*>(buffer), packed, runs);
    mark(event);
  });
}

Event CudaQueue::scatter(void* buffer, const void* packed, const Runs& runs) {
  return give([&](Event event) {
    move_runs(Direction::scatter, buffer, const_cast<void*>(packed), runs);
    mark(event);
  });
}

/// At least `bytes` bytes, zero but for what an earlier call left there for the next.
void* CudaQueue::workspace(std::size_t bytes) {
  if (workspace_.bytes() < bytes) {
    memory::DeviceBuffer larger(device_, std::max(bytes, first_workspace), stream_);
    check(cudaMemsetAsync(larger.data(), 0, larger.bytes(), stream_), "a workspace");
    workspace_ = std::move(larger);
  }
  return workspace_.data();
}

Spec CudaQueue::resolve(const Spec& spec, ElementType type, const void* elements,
                        std::size_t count) {
  // mpc's encoder chooses the distance, and its payloads tell it.
  if (spec.bound != Bound::rel) return spec;
  const Event event = extent(type, elements, count, &mapped_->extent, ++extents_);
  State state = State::pending;
  while (state == State::pending) state = query(event, nullptr);
  const codec::Range range =
      state == State::done ? codec::range_of(mapped_->extent) : codec::Range{};
  return codec::resolve(spec, type, nullptr, 0, range);
}

Event CudaQueue::extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
                        std::uint32_t sequence) {
  return give([&](Event event) {
    // Ranges are found by szp's kernels.
    const Spec szp{.codec = Codec::szp};
    void* const work = workspace(codec::cuda::workspace_bytes(szp, type, count, 1));
    check(codec::cuda::finite_extent(type, elements, count, work, as_mapped(extent), sequence,
                                     stream_),
          "a range");
    mark(event);
  });
}

Event CudaQueue::encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
                        RangeOf range, std::span<const Extent> extents) {
  const auto enqueue = [&](Event event) {
    std::vector<codec::cuda::EncodeSegment> segments;
    segments.reserve(pieces.size());
    std::size_t count = 0;
    for (const Piece& piece : pieces) {
      segments.push_back(
          {piece.elements, piece.count, piece.payload, report_of(event++, piece.published)});
      count += piece.count;
    }
    void* const work = workspace(codec::cuda::workspace_bytes(spec, type, count, pieces.size()));
    const Extent* const mapped = extents.empty() ? nullptr : as_mapped(extents.data());
    check(codec::cuda::encode(spec, type, segments, work, stream_, range, {mapped, extents.size()}),
          "encoding");
  };
  static_assert(most_pieces <= codec::cuda::max_common_range);
  return give(enqueue, pieces.size());
}

Event CudaQueue::decode(const Spec& spec, ElementType type, std::span<const Incoming> payloads,
                        Combine how) {
  const auto enqueue = [&](Event event) {
    std::vector<codec::cuda::DecodeSegment> segments;
    segments.reserve(payloads.size());
    std::size_t count = 0;
    for (const Incoming& one : payloads) {
      segments.push_back({one.payload, one.bytes, one.elements, one.count, report_of(event++),
                          one.report ? as_mapped(one.report) : nullptr});
      count += one.count;
    }
    void* const work = workspace(codec::cuda::workspace_bytes(spec, type, count, payloads.size()));
    check(codec::cuda::decode(spec, type, segments, how, work, stream_), "decoding");
  };
  return give(enqueue, payloads.size());
}

Event CudaQueue::add(const Spec& spec, ElementType type, std::span<const Sum> sums) {
  const auto enqueue = [&](Event event) {
    std::vector<codec::cuda::Summand> summands;
    std::size_t most = 0;
    for (const Sum& sum : sums) most += sum.summands.size();
    summands.reserve(most);
    std::vector<codec::cuda::AddSegment> segments;
    segments.reserve(sums.size());
    std::size_t count = 0;
    for (const Sum& sum : sums) {
      const codec::cuda::Summand* const first = summands.data() + summands.size();
      for (const Summand& one : sum.summands) {
        const Report* const report = one.report ? as_mapped(one.report) : nullptr;
        summands.push_back({one.payload, one.bytes, report, one.is_elements});
      }
      segments.push_back({{first, sum.summands.size()},
                          sum.count,
                          sum.payload,
                          report_of(event++, sum.published),
                          sum.decoded});
      count += sum.count;
    }
    void* const work = workspace(codec::cuda::workspace_bytes(spec, type, count, sums.size()));
    check(codec::cuda::add(spec, type, segments, work, stream_), "adding");
  };
  return give(enqueue, sums.size());
}

Event CudaQueue::combine(Combine how, ElementType type, std::span<const void* const> inputs,
                         void* out, std::size_t count, bool wide) {
  return give([&](Event event) {
    check(combine_elements(how, type, inputs, out, count, wide, tell(event), stream_), "combining");
  });
}

Event CudaQueue::combine_in_any_order(Combine how, ElementType type,
                                      std::span<const void* const> inputs, void* out,
                                      std::size_t count, const codec::Grid& grid) {
  return give([&](Event event) {
    const bool is_far = inputs.size() > most_inputs;
    check(mpress::gpu::combine_in_any_order(how, type, inputs,
                                            is_far ? as_mapped(inputs.data()) : nullptr, out, count,
                                            grid, tell(event), stream_),
          "combining");
  });
}

Event CudaQueue::combine_jointly(Combine how, ElementType type, const Joint& joint) {
  return give([&](Event event) {
    check(mpress::gpu::combine_jointly(how, type, joint, as_mapped(joint.undone), tell(event),
                                       stream_),
          "combining");
  });
}

Event CudaQueue::move_jointly(const JointMove& move) {
  return give([&](Event event) {
    check(mpress::gpu::move_jointly(move, as_mapped(move.undone), tell(event), stream_), "moving");
  });
}

Event CudaQueue::sum_jointly(ElementType type, const JointSum& sum) {
  return give([&](Event event) {
    check(mpress::gpu::sum_jointly(type, sum, as_mapped(sum.tally), tell(event), stream_),
          "adding up");
  });
}

/// One event is enough, made at the first call: a stream that waits for one waits for what had been
/// recorded by the time of that call, whatever it records later.
void CudaQueue::order(cudaStream_t earlier, cudaStream_t later) {
  if (!order_) check(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming), "an event");
  check(cudaEventRecord(order_, earlier), "ordering two streams");
  check(cudaStreamWaitEvent(later, order_, 0), "ordering two streams");
}

void CudaQueue::wait_for(const PriorWork& work) {
  try {
    const ContextScope scope(device_);
    static_cast<const CudaPriorWork&>(work).hold_up(stream_);
  } catch (const std::exception&) {
    fail(++given_);
  }
}

bool CudaQueue::signal(void* stream) {
  const auto callers = static_cast<cudaStream_t>(stream);
  try {
    const ContextScope scope(device_);
    if (is_captured(callers)) return false;
    order(stream_, callers);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// From here on, until the queue works again.
void CudaQueue::fail(Event event) {
  cudaGetLastError();  // not a failure of the program's next call
  failed_from_ = event;
  failed_to_ = std::numeric_limits<Event>::max();
}

bool CudaQueue::is_failed(Event event) const {
  return failed_from_ != 0 && event >= failed_from_ && event <= failed_to_;
}

/// Looks at what the device has written.
void CudaQueue::observe(Event event) {
  const std::uint32_t flag = __atomic_load_n(&mapped_->done, __ATOMIC_ACQUIRE);
  const auto further = static_cast<std::int32_t>(flag - static_cast<std::uint32_t>(done_));
  if (further > 0) done_ += static_cast<std::uint32_t>(further);
  if (done_ < last_ahead_) {
    // Of another run of copies, it lies elsewhere.
    const std::uint32_t told = __atomic_load_n(&mapped_->told, __ATOMIC_ACQUIRE);
    const std::uint32_t behind = told - static_cast<std::uint32_t>(first_ahead_);
    if (behind <= last_ahead_ - first_ahead_) done_ = std::max(done_, first_ahead_ + behind);
  }
  // Pieces that were encoded in one go may end in any order, where they are short.
  for (auto report = reports_.upper_bound(done_); report != reports_.end() && done_ < event;
       ++report) {
    // Those of work that failed may lie where nothing is mapped any more.
    if (report->first > event || is_failed(report->first) ||
        __atomic_load_n(&report->second.get()->sequence, __ATOMIC_ACQUIRE) == 0) {
      return;
    }
    done_ = report->first;
  }
}

State CudaQueue::query(Event event, Outcome* outcome) {
  if (event > done_ && !is_failed(event)) {
    observe(event);
    if (event > done_ && ++looks_ % looks_a_query == 0) {
      try {
        const ContextScope scope(device_);
        cudaError_t code = cudaStreamQuery(stream_);
        if (code == cudaSuccess && telling_) code = cudaStreamQuery(telling_);
        observe(event);
        if (code != cudaErrorNotReady && event > done_) fail(done_ + 1);
      } catch (const std::exception&) {
        fail(done_ + 1);
      }
    }
  }
  if (is_failed(event)) return State::failed;
  if (event > done_) return State::pending;
  if (outcome) {
    if (const auto report = reports_.find(event); report != reports_.end()) {
      const Report& told = *report->second.get();
      *outcome = {static_cast<std::size_t>(told.bytes), told.status};
      reports_.erase(report);
    }
  }
  return State::done;
}

void CudaQueue::drain() {
  observe(given_);
  if (done_ == given_) return;
  try {
    const ContextScope scope(device_);
    check(cudaStreamSynchronize(stream_), "work on the stream");
    if (std::exchange(goes_ahead_, false)) {
      check(cudaStreamSynchronize(telling_), "work on the stream");
    }
    done_ = given_;
    if (!is_failed(given_)) return;
    // What failed was a call, not the device: of a codec's kernels, some may have run.
    failed_to_ = given_;
    reports_.erase(reports_.lower_bound(failed_from_), reports_.end());
    check(cudaMemsetAsync(workspace_.data(), 0, workspace_.bytes(), stream_), "a workspace");
  } catch (const std::exception&) {
    if (!is_failed(given_)) fail(done_ + 1);
  }
}

}  // namespace mpress::gpu
