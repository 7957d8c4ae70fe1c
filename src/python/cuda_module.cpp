// What mpress._core has for arrays on GPUs. Pointers and streams are plain integers here;
// python/mpress/_device.py makes and checks them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"
#include "codec/szp/format.hpp"
#include "memory/device.hpp"
#include "memory/kind.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

using memory::DeviceBuffer;

cudaStream_t stream_of(std::uintptr_t handle) { return reinterpret_cast<cudaStream_t>(handle); }

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

/// Encodes on the device; returns the payload in a buffer of its size, and the bound of szp.
nb::tuple cuda_encode(const std::string& text, const std::string& type_name,
                      std::uintptr_t elements, std::size_t count, int device,
                      std::uintptr_t stream_handle) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  cudaStream_t stream = stream_of(stream_handle);
  DeviceBuffer payload;
  codec::szp::Header header;
  const bool bounded = spec.bound != Bound::none;
  {
    nb::gil_scoped_release release;
    const memory::DeviceScope scope(device);
    const DeviceBuffer room(device, codec::max_payload_bytes(spec, type, count), stream);
    const memory::PinnedResult result;
    const codec::cuda::EncodeSegment segment{reinterpret_cast<const void*>(elements), count,
                                             room.data(), result.get()};
    const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1),
                                 stream);
    memory::check(codec::cuda::encode(spec, type, {&segment, 1}, work.data(), stream), "encoding");
    payload = fitted(room, result.wait(stream).bytes, bounded ? &header : nullptr);
  }
  return nb::make_tuple(std::move(payload), bounded ? nb::cast(header.bound) : nb::none());
}

/// A payload at any address, where the codecs can read it: a copy where it is not aligned.
class AlignedPayload {
 public:
  AlignedPayload(std::uintptr_t payload, std::size_t bytes, int device, cudaStream_t stream)
      : at_(reinterpret_cast<const void*>(payload)) {
    if (payload % 16 == 0) return;
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

/// Decodes on the device and waits for the report: empty, or what is wrong with the payload.
std::string cuda_decode(const std::string& text, const std::string& type_name,
                        std::uintptr_t payload, std::size_t bytes, std::uintptr_t elements,
                        std::size_t count, const std::string& combine_name, int device,
                        std::uintptr_t stream_handle) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  const codec::cuda::Combine combine = combine_of(combine_name);
  cudaStream_t stream = stream_of(stream_handle);
  nb::gil_scoped_release release;
  const memory::DeviceScope scope(device);
  const AlignedPayload aligned(payload, bytes, device, stream);
  const memory::PinnedResult result;
  const codec::cuda::DecodeSegment segment{aligned.data(), bytes, reinterpret_cast<void*>(elements),
                                           count, result.get()};
  const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1), stream);
  memory::check(codec::cuda::decode(spec, type, {&segment, 1}, combine, work.data(), stream),
                "decoding");
  const Status status = result.wait(stream).status;
  return status == Status::ok ? std::string() : std::string(status_text(status));
}

/// As add() on the host: a problem, or the payload in a buffer of its size, and its bound.
nb::tuple cuda_add(const std::string& text, const std::string& type_name, std::uintptr_t a,
                   std::size_t a_bytes, std::uintptr_t b, std::size_t b_bytes, std::size_t count,
                   int device, std::uintptr_t stream_handle) {
  const ElementType type = element_type(type_name);
  const Spec spec = sum_spec(text, type);
  cudaStream_t stream = stream_of(stream_handle);
  DeviceBuffer payload;
  codec::szp::Header header;
  Status status;
  {
    nb::gil_scoped_release release;
    const memory::DeviceScope scope(device);
    const AlignedPayload first(a, a_bytes, device, stream);
    const AlignedPayload second(b, b_bytes, device, stream);
    const DeviceBuffer room(device, codec::max_payload_bytes(spec, type, count), stream);
    const memory::PinnedResult result;
    const codec::cuda::AddSegment segment{first.data(), a_bytes,     second.data(), b_bytes,
                                          count,        room.data(), result.get()};
    const memory::Workspace work(device, codec::cuda::workspace_bytes(spec, type, count, 1),
                                 stream);
    memory::check(codec::cuda::add(spec, type, {&segment, 1}, work.data(), stream), "adding");
    const codec::cuda::Result report = result.wait(stream);
    status = report.status;
    if (status == Status::ok) payload = fitted(room, report.bytes, &header);
  }
  if (status != Status::ok) return nb::make_tuple(sum_problem(status), nb::none(), nb::none());
  return nb::make_tuple("", std::move(payload), header.bound);
}

/// A copy in device memory, complete.
DeviceBuffer cuda_copy(std::uintptr_t from, std::size_t bytes, int device,
                       std::uintptr_t stream_handle) {
  nb::gil_scoped_release release;
  const memory::DeviceScope scope(device);
  DeviceBuffer copy(device, bytes, stream_of(stream_handle));
  memory::check(cudaMemcpyAsync(copy.data(), reinterpret_cast<const void*>(from), bytes,
                                cudaMemcpyDefault, copy.stream()),
                "a copy");
  memory::check(cudaStreamSynchronize(copy.stream()), "a copy");
  return copy;
}

/// Copies between any two places, and waits.
void cuda_copy_to(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, int device,
                  std::uintptr_t stream_handle) {
  nb::gil_scoped_release release;
  const memory::DeviceScope scope(device);
  cudaStream_t stream = stream_of(stream_handle);
  memory::check(cudaMemcpyAsync(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
                                bytes, cudaMemcpyDefault, stream),
                "a copy");
  memory::check(cudaStreamSynchronize(stream), "a copy");
}

/// Lets `later` wait for what is enqueued on `earlier` by now.
void cuda_order(std::uintptr_t earlier, std::uintptr_t later, int device) {
  const memory::DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  memory::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  cudaError_t code = cudaEventRecord(event, stream_of(earlier));
  if (code == cudaSuccess) code = cudaStreamWaitEvent(stream_of(later), event, 0);
  cudaEventDestroy(event);
  memory::check(code, "ordering two streams");
}

/// Address, shape, element type ("f4", "f8", "u1", or empty for any other) and device of a CUDA
/// array that speaks DLPack. It must be contiguous.
nb::tuple cuda_dlpack(const nb::ndarray<nb::ro, nb::c_contig, nb::device::cuda>& array) {
  nb::list shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) shape.append(array.shape(i));
  std::string name;
  if (array.dtype() == nb::dtype<float>()) name = "f4";
  if (array.dtype() == nb::dtype<double>()) name = "f8";
  if (array.dtype() == nb::dtype<std::uint8_t>()) name = "u1";
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), nb::tuple(shape), name,
                        array.device_id());
}

/// A DLPack producer over a buffer, which keeps `owner` alive.
nb::object cuda_exporter(const DeviceBuffer& buffer, const nb::handle& owner,
                         const std::string& name, const nb::tuple& shape) {
  std::vector<std::size_t> extents;
  for (nb::handle n : shape) extents.push_back(nb::cast<std::size_t>(n));
  const nb::dlpack::dtype type = name == "f4"   ? nb::dtype<float>()
                                 : name == "f8" ? nb::dtype<double>()
                                                : nb::dtype<std::uint8_t>();
  return nb::cast(
      nb::ndarray<nb::array_api>(buffer.data(), extents.size(), extents.data(), owner, nullptr,
                                 type, nb::device::cuda::value, buffer.device()),
      nb::rv_policy::reference);
}

}  // namespace

void define_cuda(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const memory::CudaError& error) {
      PyErr_SetString(
          error.code == cudaErrorMemoryAllocation ? PyExc_MemoryError : PyExc_RuntimeError,
          error.what());
    }
  });
  nb::class_<DeviceBuffer>(m, "DeviceBuffer", "A block of device memory of mpress's pool.")
      .def_prop_ro("pointer",
                   [](const DeviceBuffer& b) { return reinterpret_cast<std::uintptr_t>(b.data()); })
      .def_prop_ro("nbytes", &DeviceBuffer::bytes)
      .def_prop_ro("device", &DeviceBuffer::device)
      .def("forget_stream", &DeviceBuffer::forget_stream)
      .def_prop_ro("stream", [](const DeviceBuffer& b) {
        return reinterpret_cast<std::uintptr_t>(b.stream());
      });
  m.def("cuda_encode", &cuda_encode, "spec"_a, "type"_a, "elements"_a, "count"_a, "device"_a,
        "stream"_a, "Encode on a device; returns the payload's buffer and szp's absolute bound.");
  m.def("cuda_decode", &cuda_decode, "spec"_a, "type"_a, "payload"_a, "bytes"_a, "elements"_a,
        "count"_a, "combine"_a, "device"_a, "stream"_a,
        "Decode on a device; returns an empty string, or what is wrong with the payload.");
  m.def("cuda_add", &cuda_add, "spec"_a, "type"_a, "a"_a, "a_bytes"_a, "b"_a, "b_bytes"_a,
        "count"_a, "device"_a, "stream"_a, "The same as add() on a device, into a buffer.");
  m.def(
      "cuda_alloc",
      [](std::size_t bytes, int device, std::uintptr_t stream) {
        return DeviceBuffer(device, bytes, stream_of(stream));
      },
      "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_copy", &cuda_copy, "pointer"_a, "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_copy_to", &cuda_copy_to, "to"_a, "pointer"_a, "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_order", &cuda_order, "earlier"_a, "later"_a, "device"_a);
  m.def(
      "cuda_device_of",
      [](std::uintptr_t pointer) {
        return memory::device_of(reinterpret_cast<const void*>(pointer));
      },
      "pointer"_a);
  m.def("cuda_dlpack", &cuda_dlpack, "array"_a);
  m.def("cuda_exporter", &cuda_exporter, "buffer"_a, "owner"_a, "type"_a, "shape"_a);
  define_cuda_timing(m);
}

}  // namespace mpress::python
