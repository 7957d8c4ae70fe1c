// More than 2^32 elements in one segment: what they decode to is compared with parts of them, each
// encoded alone. Units do not depend on each other, so both must agree.
#include "cuda/twins.hpp"

namespace mpress::test {
namespace {

template <class T>
__global__ void fill(T* out, std::size_t count, std::size_t first) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::size_t at = first + i;
    const auto phase = static_cast<float>(at % 1000003) * 1e-3f;
    out[i] = static_cast<T>(sinf(phase) + static_cast<float>(at >> 20) * 1e-2f);
  }
}

__global__ void compare(const unsigned char* a, const unsigned char* b, std::size_t bytes,
                        unsigned long long* different) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long found = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes / 4;
       i += stride) {
    found += reinterpret_cast<const unsigned*>(a)[i] != reinterpret_cast<const unsigned*>(b)[i];
  }
  if (found != 0) atomicAdd(different, found);
}

}  // namespace

int large(const Spec& spec, ElementType type) {
  const std::size_t size = element_size(type);
  const std::size_t part = std::size_t{1} << 28;
  const std::size_t count = (std::size_t{1} << 32) + part + 12345;
  const auto put = [&](void* out, std::size_t n, std::size_t first) {
    if (type == ElementType::f32) {
      fill<<<1024, 256>>>(static_cast<float*>(out), n, first);
    } else {
      fill<<<1024, 256>>>(static_cast<double*>(out), n, first);
    }
  };
  Device elements(count * size), payload(codec::max_payload_bytes(spec, type, count));
  Device own(part * size), own_payload(codec::max_payload_bytes(spec, type, part));
  Workspace work(codec::cuda::workspace_bytes(spec, type, count, 1));
  Results results(1);
  const auto through = [&](Device& data, std::size_t n, Device& bytes) {
    const EncodeSegment in{data.data(), n, bytes.data(), results.host};
    require(codec::cuda::encode(spec, type, {&in, 1}, work.data, nullptr), "encode");
    require(cudaDeviceSynchronize(), "encode");
    // Decoded into the elements' place, which is filled with something else.
    require(cudaMemset(data.data(), 0x5A, n * size), "memset");
    const DecodeSegment out{bytes.data(), results.host->bytes, data.data(), n, results.host};
    require(codec::cuda::decode(spec, type, {&out, 1}, Combine::replace, work.data, nullptr),
            "decode");
    require(cudaDeviceSynchronize(), "decode");
    if (results.host->status != codec::Status::ok) fail(status_text(results.host->status));
    return results.host->bytes;
  };
  put(elements.data(), count, 0);
  through(elements, count, payload);
  unsigned long long* different = nullptr;
  require(cudaMallocManaged(&different, sizeof *different), "a counter");
  *different = 0;
  for (std::size_t first = 0; first < count; first += part) {
    const std::size_t n = std::min(part, count - first);
    put(own.data(), n, first);
    through(own, n, own_payload);
    compare<<<1024, 256>>>(elements.data() + first * size, own.data(), n * size, different);
    require(cudaDeviceSynchronize(), "compare");
  }
  if (*different != 0) fail(std::to_string(*different) + " words differ");
  if (!elements.intact() || !payload.intact()) fail("wrote beyond a buffer");
  std::printf("%s %s: %zu elements, %d failures\n", to_string(spec).c_str(), element_name(type),
              count, failures);
  cudaFree(different);
  return failures != 0;
}

}  // namespace mpress::test
