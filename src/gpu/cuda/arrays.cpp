#include "gpu/arrays.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"
#include "codec/szp/format.hpp"
#include "gpu/cuda/arrays_timing.hpp"
#include "gpu/cuda/pinned_report.hpp"
#include "gpu/gpu.hpp"

namespace mpress::gpu {

Report PinnedReport::wait(cudaStream_t stream) const {
  const auto reported = [&] { return __atomic_load_n(&at_->sequence, __ATOMIC_ACQUIRE) != 0; };
  // A query costs more than many looks at the flag; it finds launches that failed.
  for (std::uint32_t looks = 1; !reported(); ++looks) {
    if (looks % 4096 != 0) continue;
    const cudaError_t code = cudaStreamQuery(stream);
    if (code == cudaErrorNotReady) continue;
    memory::check(code, "work on the stream");
    if (!reported()) throw memory::CudaError("the device wrote no report", cudaErrorUnknown);
  }
  return *at_;
}

namespace {

using memory::DeviceBuffer;

class PoolBlock final : public DeviceBlock {
 public:
  explicit PoolBlock(DeviceBuffer buffer) : buffer_(std::move(buffer)) {}
  void* data() const override { return buffer_.data(); }
  std::size_t bytes() const override { return buffer_.bytes(); }
  int device() const override { return buffer_.device(); }
  void* stream() const override { return buffer_.stream(); }
  void forget_stream() override { buffer_.forget_stream(); }

 private:
  DeviceBuffer buffer_;
};

DeviceBlockPointer block_of(DeviceBuffer buffer) {
  return std::make_unique<PoolBlock>(std::move(buffer));
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

/// The payload of `bytes` bytes in `room`, in a buffer of its size, and its header where `header`
/// is given; complete.
DeviceBuffer fitted(const DeviceBuffer& room, std::size_t bytes, codec::szp::Header* header) {
  DeviceBuffer payload(room.device(), bytes, room.stream());
  memory::check(
      cudaMemcpyAsync(payload.data(), room.data(), bytes, cudaMemcpyDeviceToDevice, room.stream()),
      "the payload");
  if (header) {
    memory::check(
        cudaMemcpyAsync(header, room.data(), sizeof *header, cudaMemcpyDeviceToHost, room.stream()),
        "the payload's header");
  }
  memory::check(cudaStreamSynchronize(room.stream()), "the payload");
  return payload;
}

/// A payload at any address, where the codecs can read it: a copy where it is not aligned.
class AlignedPayload {
 public:
  AlignedPayload(const void* payload, std::size_t bytes, int device, cudaStream_t stream)
      : at_(payload) {
    if (reinterpret_cast<std::uintptr_t>(payload) % 16 == 0) return;
    copy_ = DeviceBuffer(device, bytes, stream);
    memory::check(cudaMemcpyAsync(copy_.data(), at_, bytes, cudaMemcpyDeviceToDevice, stream),
                  "the payload");
    at_ = copy_.data();
  }
  const void* data() const { return at_; }

 private:
  DeviceBuffer copy_;
  const void* at_;
};

Failure failure(Failure::Kind kind, const char* text) {
  Failure result;
  result.kind = kind;
  std::snprintf(result.text, sizeof result.text, "%s", text);
  return result;
}

/// What `call` throws, as a value.
template <class Call>
Failure guarded(Call call) {
  try {
    call();
    return {};
  } catch (const memory::CudaError& error) {
    return failure(error.code == cudaErrorMemoryAllocation ? Failure::no_memory : Failure::refused,
                   error.what());
  } catch (const std::bad_alloc&) {
    return failure(Failure::no_memory, "the host's memory ran out");
  } catch (const std::exception& error) {
    return failure(Failure::refused, error.what());
  }
}

class CudaArrays final : public Arrays {
 public:
  std::uint32_t version() const override { return interface_version; }

  int devices() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
  }

  Failure name(int device, char* text, std::size_t room) override {
    return guarded([&] {
      cudaDeviceProp properties;
      memory::check(cudaGetDeviceProperties(&properties, device), "the device");
      std::snprintf(text, room, "%s", properties.name);
    });
  }

  Failure allocate(std::size_t bytes, int device, void* stream,
                   DeviceBlockPointer& block) override {
    return guarded([&] { block = block_of(DeviceBuffer(device, bytes, stream_of(stream))); });
  }

  Failure encode(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                 int device, void* handle, DeviceBlockPointer& payload, double& bound) override {
    return guarded([&] {
      cudaStream_t stream = stream_of(handle);
      const memory::DeviceScope scope(device);
      const DeviceBuffer room(device, codec::max_payload_bytes(spec, type, count), stream);
      const PinnedReport report;
      const codec::cuda::EncodeSegment segment{elements, count, room.data(), report.get()};
      const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1),
                                   stream);
      memory::check(codec::cuda::encode(spec, type, {&segment, 1}, work.data(), stream),
                    "encoding");
      codec::szp::Header header = {};
      const bool bounded = spec.bound != Bound::none;
      payload = block_of(fitted(room, report.wait(stream).bytes, bounded ? &header : nullptr));
      bound = header.bound;
    });
  }

  Failure decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                 void* elements, std::size_t count, codec::Combine how, int device, void* handle,
                 codec::Status& status) override {
    return guarded([&] {
      cudaStream_t stream = stream_of(handle);
      const memory::DeviceScope scope(device);
      const AlignedPayload aligned(payload, bytes, device, stream);
      const PinnedReport report;
      const codec::cuda::DecodeSegment segment{aligned.data(), bytes, elements, count,
                                               report.get()};
      const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1),
                                   stream);
      memory::check(codec::cuda::decode(spec, type, {&segment, 1}, how, work.data(), stream),
                    "decoding");
      status = report.wait(stream).status;
    });
  }

  Failure add(const Spec& spec, ElementType type, std::span<const codec::Summand> summands,
              std::size_t count, int device, void* handle, codec::Status& status,
              DeviceBlockPointer& payload, double& bound) override {
    return guarded([&] {
      cudaStream_t stream = stream_of(handle);
      const memory::DeviceScope scope(device);
      std::vector<AlignedPayload> aligned;
      std::vector<codec::cuda::Summand> given;
      for (const codec::Summand& one : summands) {
        aligned.emplace_back(one.payload, one.bytes, device, stream);
        given.push_back({aligned.back().data(), one.bytes});
      }
      const DeviceBuffer room(device, codec::max_payload_bytes(spec, type, count), stream);
      const PinnedReport pinned;
      const codec::cuda::AddSegment segment{given, count, room.data(), pinned.get()};
      const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1),
                                   stream);
      memory::check(codec::cuda::add(spec, type, {&segment, 1}, work.data(), stream), "adding");
      const Report report = pinned.wait(stream);
      status = report.status;
      if (status != codec::Status::ok) return;
      codec::szp::Header header = {};
      payload = block_of(fitted(room, report.bytes, &header));
      bound = header.bound;
    });
  }

  Failure copy(const void* from, std::size_t bytes, int device, void* stream,
               DeviceBlockPointer& block) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      DeviceBuffer made(device, bytes, stream_of(stream));
      memory::check(cudaMemcpyAsync(made.data(), from, bytes, cudaMemcpyDefault, made.stream()),
                    "a copy");
      memory::check(cudaStreamSynchronize(made.stream()), "a copy");
      block = block_of(std::move(made));
    });
  }

  Failure copy_to(void* to, const void* from, std::size_t bytes, int device,
                  void* stream) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      memory::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)),
                    "a copy");
      memory::check(cudaStreamSynchronize(stream_of(stream)), "a copy");
    });
  }

  Failure order(void* earlier, void* later, int device) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      cudaEvent_t event = nullptr;
      memory::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
      cudaError_t code = cudaEventRecord(event, stream_of(earlier));
      if (code == cudaSuccess) code = cudaStreamWaitEvent(stream_of(later), event, 0);
      cudaEventDestroy(event);
      memory::check(code, "ordering two streams");
    });
  }

  Failure time(const Spec& spec, ElementType type, const void* elements, std::size_t count,
               std::size_t segments, int device, int repeat, Times& times) override {
    return guarded(
        [&] { times = time_codec(spec, type, elements, count, segments, device, repeat); });
  }

  std::size_t workspace_bytes(const Spec& spec, ElementType type, std::size_t count) override {
    return codec::cuda::workspace_bytes(spec, type, count, 1);
  }

  Failure encode_async(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                       void* payload, Report* report, void* workspace, int device,
                       void* stream) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      const codec::cuda::EncodeSegment segment{elements, count, payload, report};
      memory::check(codec::cuda::encode(spec, type, {&segment, 1}, workspace, stream_of(stream)),
                    "encoding");
    });
  }

  Failure decode_async(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                       const Report* encoded, void* elements, std::size_t count, codec::Combine how,
                       Report* report, void* workspace, int device, void* stream) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      const codec::cuda::DecodeSegment segment{payload, bytes, elements, count, report, encoded};
      memory::check(
          codec::cuda::decode(spec, type, {&segment, 1}, how, workspace, stream_of(stream)),
          "decoding");
    });
  }

  Failure add_async(const Spec& spec, ElementType type, std::span<const codec::Summand> summands,
                    std::size_t count, void* payload, Report* report, void* workspace, int device,
                    void* stream) override {
    return guarded([&] {
      const memory::DeviceScope scope(device);
      std::vector<codec::cuda::Summand> given;
      for (const codec::Summand& one : summands) given.push_back({one.payload, one.bytes});
      const codec::cuda::AddSegment segment{given, count, payload, report};
      memory::check(codec::cuda::add(spec, type, {&segment, 1}, workspace, stream_of(stream)),
                    "adding");
    });
  }
};

}  // namespace
}  // namespace mpress::gpu

extern "C" [[gnu::visibility("default")]] mpress::gpu::Arrays* mpress_gpu_arrays() {
  static constinit mpress::gpu::CudaArrays arrays;
  return &arrays;
}
