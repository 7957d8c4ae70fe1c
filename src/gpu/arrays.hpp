// Arrays of the program's on GPUs, encoded and decoded in the order of its own streams: what the
// Python module asks of libmpress_cuda.so, which alone has a CUDA runtime and pools of memory.
//
// No call throws: the library has a C++ runtime of its own. Streams are cudaStream_t of `device`,
// null being the default one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/report.hpp"
#include "codec/spec.hpp"
#include "codec/status.hpp"
#include "codec/summand.hpp"

namespace mpress::gpu {

/// What became of a call: nothing wrong, or why, for people.
struct Failure {
  enum Kind : std::uint8_t { none, no_memory, refused };
  Kind kind = none;
  char text[255] = "";
};

/// A block of device memory of the library's pool. It returns there in the order of its stream when
/// it is destroyed: the stream lives until then, unless forget_stream() was called.
class DeviceBlock {
 public:
  virtual ~DeviceBlock() = default;
  virtual void* data() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual int device() const = 0;
  virtual void* stream() const = 0;
  /// Nobody keeps the stream alive: destruction waits until the whole device is idle.
  virtual void forget_stream() = 0;
};

using DeviceBlockPointer = std::unique_ptr<DeviceBlock>;

/// Median seconds; 0 where there is none.
struct Times {
  std::size_t payload_bytes = 0;
  double encode = 0, decode = 0, sum = 0;  ///< between events on the device
  double add = 0, add_four = 0;            ///< of as many payloads, where the codec has sums
  double copy = 0;
  double encode_to_host = 0, decode_to_host = 0;  ///< until the host sees the report
};

/// One object a process, never destroyed; thread-safe. Pointers to arrays point to memory of
/// `device`, or that it reaches.
class Arrays {
 public:
  virtual std::uint32_t version() const = 0;  ///< gpu::interface_version

  /// GPUs that this process can use.
  virtual int devices() = 0;
  /// Writes its name, cut to fit.
  virtual Failure name(int device, char* text, std::size_t room) = 0;

  /// For work on `stream`.
  virtual Failure allocate(std::size_t bytes, int device, void* stream,
                           DeviceBlockPointer& block) = 0;

  /// The payload in a block of its size, complete. `bound`: the absolute one that it tells; 0 of
  /// codecs that have none.
  virtual Failure encode(const Spec& spec, ElementType type, const void* elements,
                         std::size_t count, int device, void* stream, DeviceBlockPointer& payload,
                         double& bound) = 0;

  /// Waits. The payload has any alignment; `status` is what was found.
  virtual Failure decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
                         void* elements, std::size_t count, codec::Combine how, int device,
                         void* stream, codec::Status& status) = 0;

  /// The sum of payloads of a codec that has sums, 2 to codec::most_summands of any alignment, as
  /// encode()'s; none where `status` is not ok.
  virtual Failure add(const Spec& spec, ElementType type, std::span<const codec::Summand> summands,
                      std::size_t count, int device, void* stream, codec::Status& status,
                      DeviceBlockPointer& payload, double& bound) = 0;

  /// A copy from anywhere, complete.
  virtual Failure copy(const void* from, std::size_t bytes, int device, void* stream,
                       DeviceBlockPointer& block) = 0;
  /// Copies between any two places, and waits.
  virtual Failure copy_to(void* to, const void* from, std::size_t bytes, int device,
                          void* stream) = 0;

  /// Lets `later` wait for what is enqueued on `earlier` by now.
  virtual Failure order(void* earlier, void* later, int device) = 0;

  /// Times of one codec on `count` elements, cut into `segments` equal parts that are served by one
  /// call, with buffers that take turns.
  virtual Failure time(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                       std::size_t segments, int device, int repeat, Times& times) = 0;

  // With memory from the caller, in the order of the stream: these allocate nothing, wait for
  // nothing, and may be captured into a graph. Memory as codec/codec_cuda.hpp has it: payloads on
  // 16 bytes, elements aligned as their type, `report` where the device may write to.
  virtual std::size_t workspace_bytes(const Spec& spec, ElementType type, std::size_t count) = 0;
  virtual Failure encode_async(const Spec& spec, ElementType type, const void* elements,
                               std::size_t count, void* payload, Report* report, void* workspace,
                               int device, void* stream) = 0;
  /// `encoded`: null, or the payload's report, which tells its size; then `bytes` is its room.
  virtual Failure decode_async(const Spec& spec, ElementType type, const void* payload,
                               std::size_t bytes, const Report* encoded, void* elements,
                               std::size_t count, codec::Combine how, Report* report,
                               void* workspace, int device, void* stream) = 0;
  virtual Failure add_async(const Spec& spec, ElementType type,
                            std::span<const codec::Summand> summands, std::size_t count,
                            void* payload, Report* report, void* workspace, int device,
                            void* stream) = 0;

 protected:
  ~Arrays() = default;
};

/// What a library exports beside its Gpu: `extern "C" mpress::gpu::Arrays* mpress_gpu_arrays()`,
/// also where there is no device.
using ArraysEntry = Arrays* (*)();
inline constexpr char arrays_entry_name[] = "mpress_gpu_arrays";

}  // namespace mpress::gpu
