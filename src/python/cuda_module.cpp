// What mpress._core has for arrays on GPUs. Pointers and streams are plain integers here;
// python/mpress/_device.py makes and checks them. libmpress_cuda.so, loaded when it is first
// needed, does the work.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/arrays.hpp"
#include "gpu/gpu.hpp"
#include "memory/kind.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

struct DeviceBuffer {
  gpu::DeviceBlockPointer block;
};

struct NoMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The package's own libmpress_cuda.so, which is the one that MPI messages use.
gpu::Arrays* load_arrays(std::string& why_not) {
  Dl_info info;
  std::string path;
  if (::dladdr(reinterpret_cast<void*>(&load_arrays), &info) && info.dli_fname) {
    path = info.dli_fname;
  }
  path.resize(path.rfind('/') + 1);  // npos + 1 is 0
  path += "lib/libmpress_cuda.so";
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const error = ::dlerror();
    why_not = error ? error : path + " cannot be loaded";
    return nullptr;
  }
  const auto entry = reinterpret_cast<gpu::ArraysEntry>(::dlsym(library, gpu::arrays_entry_name));
  gpu::Arrays* const found = entry ? entry() : nullptr;
  if (found && found->version() == gpu::interface_version) return found;
  why_not = path + " is of another version of mpress";
  return nullptr;
}

/// Null where the library cannot be loaded; `why_not` says why.
gpu::Arrays* find_arrays(const std::string*& why_not) {
  static std::string reason;
  static gpu::Arrays* const found = load_arrays(reason);
  why_not = &reason;
  return found;
}

gpu::Arrays& arrays() {
  const std::string* why_not = nullptr;
  gpu::Arrays* const found = find_arrays(why_not);
  if (!found) throw std::runtime_error(*why_not);
  return *found;
}

void check(const gpu::Failure& failure) {
  if (failure.kind == gpu::Failure::no_memory) throw NoMemory(failure.text);
  if (failure.kind != gpu::Failure::none) throw std::runtime_error(failure.text);
}

template <class T = void>
T* pointer(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}
std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Encodes on the device; returns the payload in a buffer of its size, and the bound of szp.
nb::tuple cuda_encode(const std::string& text, const std::string& type_name,
                      std::uintptr_t elements, std::size_t count, int device,
                      std::uintptr_t stream) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  DeviceBuffer payload;
  double bound = 0;
  {
    nb::gil_scoped_release release;
    check(arrays().encode(spec, type, pointer(elements), count, device, pointer(stream),
                          payload.block, bound));
  }
  const bool bounded = spec.bound != Bound::none;
  return nb::make_tuple(std::move(payload), bounded ? nb::cast(bound) : nb::none());
}

/// Decodes on the device and waits for the report: empty, or what is wrong with the payload.
std::string cuda_decode(const std::string& text, const std::string& type_name,
                        std::uintptr_t payload, std::size_t bytes, std::uintptr_t elements,
                        std::size_t count, const std::string& combine_name, int device,
                        std::uintptr_t stream) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  const codec::Combine combine = combine_of(combine_name);
  nb::gil_scoped_release release;
  codec::Status status = codec::Status::ok;
  check(arrays().decode(spec, type, pointer(payload), bytes, pointer(elements), count, combine,
                        device, pointer(stream), status));
  return status == codec::Status::ok ? std::string() : std::string(status_text(status));
}

/// As add() on the host: a problem, or the payload in a buffer of its size, and its bound.
nb::tuple cuda_add(const std::string& text, const std::string& type_name,
                   const std::vector<std::pair<std::uintptr_t, std::size_t>>& payloads,
                   std::size_t count, int device, std::uintptr_t stream) {
  const ElementType type = element_type(type_name);
  const Spec spec = sum_spec(text, type);
  std::vector<codec::Summand> summands;
  for (const auto& [address, bytes] : payloads) {
    summands.push_back({pointer(address), bytes});
  }
  DeviceBuffer payload;
  double bound = 0;
  codec::Status status = codec::Status::ok;
  {
    nb::gil_scoped_release release;
    check(arrays().add(spec, type, summands, count, device, pointer(stream), status, payload.block,
                       bound));
  }
  if (status != codec::Status::ok)
    return nb::make_tuple(sum_problem(status), nb::none(), nb::none());
  return nb::make_tuple("", std::move(payload), bound);
}

DeviceBuffer cuda_alloc(std::size_t bytes, int device, std::uintptr_t stream) {
  DeviceBuffer buffer;
  check(arrays().allocate(bytes, device, pointer(stream), buffer.block));
  return buffer;
}

/// A copy in device memory, complete.
DeviceBuffer cuda_copy(std::uintptr_t from, std::size_t bytes, int device, std::uintptr_t stream) {
  nb::gil_scoped_release release;
  DeviceBuffer buffer;
  check(arrays().copy(pointer(from), bytes, device, pointer(stream), buffer.block));
  return buffer;
}

/// Copies between any two places, and waits.
void cuda_copy_to(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, int device,
                  std::uintptr_t stream) {
  nb::gil_scoped_release release;
  check(arrays().copy_to(pointer(to), pointer(from), bytes, device, pointer(stream)));
}

/// Lets `later` wait for what is enqueued on `earlier` by now.
void cuda_order(std::uintptr_t earlier, std::uintptr_t later, int device) {
  check(arrays().order(pointer(earlier), pointer(later), device));
}

/// Times of one codec on `count` elements at `elements`, cut into `segments` equal parts that are
/// served by one call.
nb::dict cuda_time(const std::string& text, const std::string& type_name, std::uintptr_t elements,
                   std::size_t count, std::size_t segments, int device, int repeat) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  if (segments == 0 || count < segments) throw nb::value_error("segments: expected 1 to count");
  gpu::Times times;
  {
    nb::gil_scoped_release release;
    check(arrays().time(spec, type, pointer(elements), count, segments, device, repeat, times));
  }
  nb::dict result;
  result["bytes"] = count / segments * segments * element_size(type);
  result["payload_bytes"] = times.payload_bytes;
  result["encode"] = times.encode;
  result["decode"] = times.decode;
  result["sum"] = times.sum;
  if (times.add != 0) result["add"] = times.add;
  if (times.add_four != 0) result["add_four"] = times.add_four;
  result["copy"] = times.copy;
  result["encode_to_host"] = times.encode_to_host;
  result["decode_to_host"] = times.decode_to_host;
  return result;
}

std::string cuda_device_name(int device) {
  char name[256] = "";
  check(arrays().name(device, name, sizeof name));
  return name;
}

int cuda_devices() {
  const std::string* why_not = nullptr;
  gpu::Arrays* const found = find_arrays(why_not);
  return found ? found->devices() : 0;
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
      nb::ndarray<nb::array_api>(buffer.block->data(), extents.size(), extents.data(), owner,
                                 nullptr, type, nb::device::cuda::value, buffer.block->device()),
      nb::rv_policy::reference);
}

}  // namespace

void define_cuda(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const NoMemory& error) {
      PyErr_SetString(PyExc_MemoryError, error.what());
    }
  });
  nb::class_<DeviceBuffer>(m, "DeviceBuffer", "A block of device memory of mpress's pool.")
      .def_prop_ro("pointer", [](const DeviceBuffer& b) { return address_of(b.block->data()); })
      .def_prop_ro("nbytes", [](const DeviceBuffer& b) { return b.block->bytes(); })
      .def_prop_ro("device", [](const DeviceBuffer& b) { return b.block->device(); })
      .def("forget_stream", [](const DeviceBuffer& b) { b.block->forget_stream(); })
      .def_prop_ro("stream", [](const DeviceBuffer& b) { return address_of(b.block->stream()); });
  m.def("cuda_encode", &cuda_encode, "spec"_a, "type"_a, "elements"_a, "count"_a, "device"_a,
        "stream"_a, "Encode on a device; returns the payload's buffer and szp's absolute bound.");
  m.def("cuda_decode", &cuda_decode, "spec"_a, "type"_a, "payload"_a, "bytes"_a, "elements"_a,
        "count"_a, "combine"_a, "device"_a, "stream"_a,
        "Decode on a device; returns an empty string, or what is wrong with the payload.");
  m.def("cuda_add", &cuda_add, "spec"_a, "type"_a, "payloads"_a, "count"_a, "device"_a, "stream"_a,
        "The same as add() on a device, into a buffer; of addresses and bytes of the payloads.");
  m.def("cuda_alloc", &cuda_alloc, "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_copy", &cuda_copy, "pointer"_a, "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_copy_to", &cuda_copy_to, "to"_a, "pointer"_a, "bytes"_a, "device"_a, "stream"_a);
  m.def("cuda_order", &cuda_order, "earlier"_a, "later"_a, "device"_a);
  m.def(
      "cuda_device_of",
      [](std::uintptr_t pointer) {
        return memory::device_of(reinterpret_cast<const void*>(pointer));
      },
      "pointer"_a);
  m.def("cuda_time", &cuda_time, "spec"_a, "type"_a, "elements"_a, "count"_a, "segments"_a,
        "device"_a, "repeat"_a,
        "Median seconds of the CUDA twins, with buffers that take turns: encode, decode, sum, "
        "add (szp) and copy between events on the device, and until the host sees the report.");
  m.def("cuda_device_name", &cuda_device_name, "device"_a);
  m.def("cuda_devices", &cuda_devices, "GPUs that this process can use.");
  m.def("cuda_dlpack", &cuda_dlpack, "array"_a);
  m.def("cuda_exporter", &cuda_exporter, "buffer"_a, "owner"_a, "type"_a, "shape"_a);
}

}  // namespace mpress::python
