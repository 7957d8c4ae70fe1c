// Times of the CUDA twins, as `mpress bench codec --device cuda` reports them. Timed here, where a
// call costs no more than it costs the engine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"
#include "memory/device.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

using codec::Combine;
using codec::cuda::AddSegment;
using codec::cuda::DecodeSegment;
using codec::cuda::EncodeSegment;
using codec::cuda::Result;
using memory::DeviceBuffer;

/// Buffers take turns, so that none is in a cache when it comes round again.
constexpr std::size_t beyond_caches = std::size_t{256} << 20;
constexpr std::size_t most_copies = 256;

double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

/// Median seconds of `call(i)` on the device, between two events.
double device_seconds(cudaStream_t stream, int repeat,
                      const std::function<void(std::size_t)>& call) {
  cudaEvent_t begin = nullptr, end = nullptr;
  memory::check(cudaEventCreate(&begin), "an event");
  memory::check(cudaEventCreate(&end), "an event");
  std::vector<double> times;
  for (int i = -2; i < repeat; ++i) {
    cudaEventRecord(begin, stream);
    call(static_cast<std::size_t>(i + 2));
    cudaEventRecord(end, stream);
    memory::check(cudaEventSynchronize(end), "timing");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 0) times.push_back(ms * 1e-3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return median(times);
}

/// Median seconds from the call until the host sees the report, on an idle device.
double host_seconds(cudaStream_t stream, const Result* result, int repeat,
                    const std::function<void(std::size_t)>& call) {
  std::vector<double> times;
  for (int i = -2; i < repeat; ++i) {
    memory::check(cudaStreamSynchronize(stream), "timing");
    const std::uint32_t before = __atomic_load_n(&result->sequence, __ATOMIC_ACQUIRE);
    const auto begin = std::chrono::steady_clock::now();
    call(static_cast<std::size_t>(i + 2));
    while (__atomic_load_n(&result->sequence, __ATOMIC_ACQUIRE) == before) {
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i >= 0) times.push_back(took.count());
  }
  return median(times);
}

/// Median seconds of adding what was encoded of every segment to a copy of itself; 0 where the sums
/// are not ones of quanta. `results` had the payloads' sizes.
double add_seconds(const Spec& spec, ElementType type, std::size_t room, int repeat,
                   const std::vector<std::vector<EncodeSegment>>& encoded,
                   const std::vector<memory::PinnedResult>& results, void* workspace, int device,
                   cudaStream_t stream) {
  const std::size_t copies = encoded.size(), segments = results.size();
  DeviceBuffer others(device, copies * segments * room, stream);
  DeviceBuffer sums(device, copies * segments * room, stream);
  memory::check(cudaMemcpyAsync(others.data(), encoded[0][0].payload, others.bytes(),
                                cudaMemcpyDeviceToDevice, stream),
                "a copy");
  std::vector<std::vector<AddSegment>> adds(copies);
  std::size_t at = 0;
  for (std::size_t c = 0; c < copies; ++c) {
    for (std::size_t s = 0; s < segments; ++s, at += room) {
      const std::size_t bytes = results[s].get()->bytes;
      adds[c].push_back({encoded[c][s].payload, bytes, others.data() + at, bytes,
                         encoded[c][s].count, sums.data() + at, results[s].get()});
    }
  }
  const double seconds = device_seconds(stream, repeat, [&](std::size_t i) {
    memory::check(codec::cuda::add(spec, type, adds[i % copies], workspace, stream), "adding");
  });
  const bool exact = std::all_of(results.begin(), results.end(), [](const memory::PinnedResult& r) {
    return r.get()->status == Status::ok;
  });
  return exact ? seconds : 0;
}

/// Times of one codec on `count` elements at `elements`, cut into `segments` equal parts that are
/// served by one call.
nb::dict cuda_time(const std::string& text, const std::string& type_name, std::uintptr_t elements,
                   std::size_t count, std::size_t segments, int device, int repeat) {
  const ElementType type = element_type(type_name);
  const Spec spec = codec_spec(text, type);
  if (segments == 0 || count < segments) throw nb::value_error("segments: expected 1 to count");
  const std::size_t part = count / segments;
  const std::size_t size = element_size(type);
  const std::size_t bytes = part * segments * size;
  const std::size_t room = (codec::max_payload_bytes(spec, type, part) + 15) / 16 * 16;
  const std::size_t copies =
      std::clamp<std::size_t>(beyond_caches / std::max<std::size_t>(bytes, 1), 1, most_copies);
  nb::dict result;
  double encode = 0, decode = 0, sum = 0, add = 0, copy = 0, encode_host = 0, decode_host = 0;
  std::size_t payload_bytes = 0;
  {
    nb::gil_scoped_release release;
    const memory::DeviceScope scope(device);
    cudaStream_t stream = nullptr;
    memory::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    {
      DeviceBuffer in(device, copies * bytes, stream), out(device, copies * bytes, stream);
      DeviceBuffer payloads(device, copies * segments * room, stream);
      const memory::Workspace work(
          device, codec::cuda::workspace_bytes(spec, type, part * segments, segments), stream);
      std::vector<memory::PinnedResult> results(segments);
      std::vector<std::vector<EncodeSegment>> encodes(copies);
      std::vector<std::vector<DecodeSegment>> decodes(copies);
      const auto encode_call = [&](std::size_t i) {
        memory::check(codec::cuda::encode(spec, type, encodes[i % copies], work.data(), stream),
                      "encoding");
      };
      for (std::size_t c = 0; c < copies; ++c) {
        std::byte* mine = in.data() + c * bytes;
        memory::check(cudaMemcpyAsync(mine, reinterpret_cast<const void*>(elements), bytes,
                                      cudaMemcpyDefault, stream),
                      "a copy");
        for (std::size_t s = 0; s < segments; ++s) {
          encodes[c].push_back({mine + s * part * size, part,
                                payloads.data() + (c * segments + s) * room, results[s].get()});
        }
        encode_call(c);
      }
      memory::check(cudaStreamSynchronize(stream), "encoding");
      for (std::size_t c = 0; c < copies; ++c) {
        for (std::size_t s = 0; s < segments; ++s) {
          decodes[c].push_back({encodes[c][s].payload, results[s].get()->bytes,
                                out.data() + c * bytes + s * part * size, part, results[s].get()});
        }
      }
      for (const memory::PinnedResult& r : results) payload_bytes += r.get()->bytes;
      const auto decode_call = [&](Combine combine) {
        return [&, combine](std::size_t i) {
          memory::check(
              codec::cuda::decode(spec, type, decodes[i % copies], combine, work.data(), stream),
              "decoding");
        };
      };
      copy = device_seconds(stream, repeat, [&](std::size_t i) {
        cudaMemcpyAsync(out.data() + i % copies * bytes, in.data() + i % copies * bytes, bytes,
                        cudaMemcpyDeviceToDevice, stream);
      });
      encode = device_seconds(stream, repeat, encode_call);
      decode = device_seconds(stream, repeat, decode_call(Combine::replace));
      sum = device_seconds(stream, repeat, decode_call(Combine::sum));
      if (spec.codec == Codec::szp) {
        encode_call(0);  // the reports tell sizes again
        memory::check(cudaStreamSynchronize(stream), "encoding");
        add = add_seconds(spec, type, room, repeat, encodes, results, work.data(), device, stream);
      }
      const Result* last = results.back().get();
      encode_host = host_seconds(stream, last, repeat, encode_call);
      decode_host = host_seconds(stream, last, repeat, decode_call(Combine::replace));
    }
    memory::check(cudaStreamSynchronize(stream), "timing");
    cudaStreamDestroy(stream);
  }
  result["bytes"] = bytes;
  result["payload_bytes"] = payload_bytes;
  result["encode"] = encode;
  result["decode"] = decode;
  result["sum"] = sum;
  if (add != 0) result["add"] = add;
  result["copy"] = copy;
  result["encode_to_host"] = encode_host;
  result["decode_to_host"] = decode_host;
  return result;
}

std::string cuda_device_name(int device) {
  cudaDeviceProp properties;
  memory::check(cudaGetDeviceProperties(&properties, device), "the device");
  return properties.name;
}

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

}  // namespace

void define_cuda_timing(nb::module_& m) {
  m.def("cuda_time", &cuda_time, "spec"_a, "type"_a, "elements"_a, "count"_a, "segments"_a,
        "device"_a, "repeat"_a,
        "Median seconds of the CUDA twins, with buffers that take turns: encode, decode, sum, "
        "add (szp) and copy between events on the device, and until the host sees the report.");
  m.def("cuda_device_name", &cuda_device_name, "device"_a);
  m.def("cuda_devices", &cuda_devices, "GPUs that this process can use.");
}

}  // namespace mpress::python
