// Timed here, where a call costs no more than it costs the engine.
#include "gpu/cuda/arrays_timing.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"
#include "gpu/cuda/pinned_report.hpp"

namespace mpress::gpu {
namespace {

using codec::Combine;
using codec::cuda::AddSegment;
using codec::cuda::DecodeSegment;
using codec::cuda::EncodeSegment;
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
double host_seconds(cudaStream_t stream, const Report* result, int repeat,
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

/// Median seconds of adding what was encoded of every segment to copies of itself, `summands` in
/// all; 0 where the sums are not ones of quanta. `sizes`: of the payloads.
double add_seconds(const Spec& spec, ElementType type, std::size_t summands, std::size_t room,
                   int repeat, const std::vector<std::vector<EncodeSegment>>& encoded,
                   const std::vector<std::size_t>& sizes, const std::vector<PinnedReport>& results,
                   void* workspace, int device, cudaStream_t stream) {
  const std::size_t copies = encoded.size(), segments = results.size();
  const std::size_t bytes = copies * segments * room;
  DeviceBuffer others(device, (summands - 1) * bytes, stream);
  DeviceBuffer sums(device, bytes, stream);
  for (std::size_t k = 0; k + 1 < summands; ++k) {
    memory::check(cudaMemcpyAsync(others.data() + k * bytes, encoded[0][0].payload, bytes,
                                  cudaMemcpyDeviceToDevice, stream),
                  "a copy");
  }
  std::vector<std::vector<codec::cuda::Summand>> given(copies * segments);
  std::vector<std::vector<AddSegment>> adds(copies);
  for (std::size_t c = 0; c < copies; ++c) {
    for (std::size_t s = 0; s < segments; ++s) {
      const std::size_t i = c * segments + s;
      given[i].push_back({encoded[c][s].payload, sizes[s]});
      for (std::size_t k = 0; k + 1 < summands; ++k) {
        given[i].push_back({others.data() + k * bytes + i * room, sizes[s]});
      }
      adds[c].push_back({given[i], encoded[c][s].count, sums.data() + i * room, results[s].get()});
    }
  }
  const double seconds = device_seconds(stream, repeat, [&](std::size_t i) {
    memory::check(codec::cuda::add(spec, type, adds[i % copies], workspace, stream), "adding");
  });
  const bool exact = std::all_of(results.begin(), results.end(), [](const PinnedReport& r) {
    return r.get()->status == codec::Status::ok;
  });
  return exact ? seconds : 0;
}

}  // namespace

Times time_codec(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                 std::size_t segments, int device, int repeat) {
  const std::size_t part = count / segments;
  const std::size_t size = element_size(type);
  const std::size_t bytes = part * segments * size;
  const std::size_t room = (codec::max_payload_bytes(spec, type, part) + 15) / 16 * 16;
  const std::size_t copies =
      std::clamp<std::size_t>(beyond_caches / std::max<std::size_t>(bytes, 1), 1, most_copies);
  Times times;
  {
    const memory::DeviceScope scope(device);
    cudaStream_t stream = nullptr;
    memory::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    {
      DeviceBuffer in(device, copies * bytes, stream), out(device, copies * bytes, stream);
      DeviceBuffer payloads(device, copies * segments * room, stream);
      const memory::Workspace work(
          device, codec::cuda::workspace_bytes(spec, type, part * segments, segments), stream);
      std::vector<PinnedReport> results(segments);
      std::vector<std::vector<EncodeSegment>> encodes(copies);
      std::vector<std::vector<DecodeSegment>> decodes(copies);
      const auto encode_call = [&](std::size_t i) {
        memory::check(codec::cuda::encode(spec, type, encodes[i % copies], work.data(), stream),
                      "encoding");
      };
      for (std::size_t c = 0; c < copies; ++c) {
        std::byte* mine = in.data() + c * bytes;
        memory::check(cudaMemcpyAsync(mine, elements, bytes, cudaMemcpyDefault, stream), "a copy");
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
      for (const PinnedReport& r : results) times.payload_bytes += r.get()->bytes;
      const auto decode_call = [&](Combine combine) {
        return [&, combine](std::size_t i) {
          memory::check(
              codec::cuda::decode(spec, type, decodes[i % copies], combine, work.data(), stream),
              "decoding");
        };
      };
      times.copy = device_seconds(stream, repeat, [&](std::size_t i) {
        cudaMemcpyAsync(out.data() + i % copies * bytes, in.data() + i % copies * bytes, bytes,
                        cudaMemcpyDeviceToDevice, stream);
      });
      times.encode = device_seconds(stream, repeat, encode_call);
      times.decode = device_seconds(stream, repeat, decode_call(Combine::replace));
      times.sum = device_seconds(stream, repeat, decode_call(Combine::sum));
      if (spec.codec == Codec::szp) {
        encode_call(0);  // the reports tell sizes again
        memory::check(cudaStreamSynchronize(stream), "encoding");
        std::vector<std::size_t> sizes;
        for (const PinnedReport& r : results) sizes.push_back(r.get()->bytes);
        const auto add_of = [&](std::size_t summands) {
          return add_seconds(spec, type, summands, room, repeat, encodes, sizes, results,
                             work.data(), device, stream);
        };
        times.add = add_of(2);
        times.add_four = add_of(4);
      }
      const Report* last = results.back().get();
      times.encode_to_host = host_seconds(stream, last, repeat, encode_call);
      times.decode_to_host = host_seconds(stream, last, repeat, decode_call(Combine::replace));
    }
    memory::check(cudaStreamSynchronize(stream), "timing");
    cudaStreamDestroy(stream);
  }
  return times;
}

}  // namespace mpress::gpu
