// What the programs that compare twins share: device memory between guards, and data.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"

namespace mpress::test {

using codec::cuda::AddSegment;
using codec::cuda::Combine;
using codec::cuda::DecodeSegment;
using codec::cuda::EncodeSegment;
using codec::cuda::RangeOf;
using codec::cuda::Result;

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

inline int failures = 0;
inline void fail(const std::string& what) {
  if (++failures <= 40) std::printf("FAIL %s\n", what.c_str());
}

/// Device memory between two guard areas, which nobody may write.
class Device {
 public:
  static constexpr std::size_t guard = 256;
  explicit Device(std::size_t bytes) : bytes_(bytes) {
    require(cudaMalloc(&base_, bytes + 2 * guard), "cudaMalloc");
    require(cudaMemset(base_, 0xA5, bytes + 2 * guard), "cudaMemset");
  }
  Device(const Device&) = delete;
  Device(Device&& other) noexcept : base_(other.base_), bytes_(other.bytes_) {
    other.base_ = nullptr;
  }
  ~Device() { cudaFree(base_); }
  unsigned char* data() const { return base_ + guard; }
  void put(const void* from, std::size_t bytes, std::size_t at = 0) {
    require(cudaMemcpy(data() + at, from, bytes, cudaMemcpyHostToDevice), "copy in");
    // Small copies may still be on their way, and streams that do not block would not wait.
    require(cudaDeviceSynchronize(), "copy in");
  }
  std::vector<unsigned char> get(std::size_t bytes, std::size_t at = 0) const {
    std::vector<unsigned char> out(bytes);
    require(cudaMemcpy(out.data(), data() + at, bytes, cudaMemcpyDeviceToHost), "copy out");
    return out;
  }
  bool intact() const {
    std::vector<unsigned char> all(2 * guard);
    require(cudaMemcpy(all.data(), base_, guard, cudaMemcpyDeviceToHost), "guard");
    require(cudaMemcpy(all.data() + guard, base_ + guard + bytes_, guard, cudaMemcpyDeviceToHost),
            "guard");
    return std::all_of(all.begin(), all.end(), [](unsigned char c) { return c == 0xA5; });
  }

 private:
  unsigned char* base_ = nullptr;
  std::size_t bytes_;
};

struct Workspace {
  explicit Workspace(std::size_t bytes) : bytes(bytes) {
    require(cudaMalloc(&data, bytes), "workspace");
    require(cudaMemset(data, 0, bytes), "workspace");
  }
  ~Workspace() { cudaFree(data); }
  void* data = nullptr;
  std::size_t bytes;
};

struct Results {
  explicit Results(std::size_t n) {
    require(cudaHostAlloc(&host, n * sizeof(Result), cudaHostAllocMapped), "results");
    std::memset(static_cast<void*>(host), 0, n * sizeof(Result));
  }
  ~Results() { cudaFreeHost(host); }
  Result* host = nullptr;
};

using Bytes = std::vector<unsigned char>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

inline constexpr int patterns = 16;

template <class T>
Bytes generate(int pattern, std::size_t count, std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x(count);
  std::normal_distribution<double> normal;
  const auto limits = std::numeric_limits<T>();
  double walk = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i);
    const double noise = normal(random);
    T v = 0;
    switch (pattern) {
      case 0: v = static_cast<T>(std::sin(t * 0.01) + std::sin(t * 0.0317) * 0.3); break;
      case 1: v = static_cast<T>(noise); break;
      case 2: v = static_cast<T>(walk += noise * 0.01); break;
      case 3: break;
      case 4: v = static_cast<T>(3.25); break;
      case 5: v = static_cast<T>(i / 1000 % 3 == 0 ? 0.0 : std::sin(t * 0.003)); break;
      case 6:
        v = random() % 97 == 0 ? limits.quiet_NaN() : static_cast<T>(std::cos(t * 0.02));
        break;
      case 7: v = static_cast<T>(std::ldexp(noise, static_cast<int>(random() % 240) - 120)); break;
      case 8: v = static_cast<T>(limits.denorm_min() * static_cast<T>(random() % 1000)); break;
      case 9: v = static_cast<T>(static_cast<float>(std::sin(t * 0.05))); break;
      case 10:
        v = i / 50 % 2 != 0 ? static_cast<T>(1e20) : static_cast<T>(std::sin(t * 0.01));
        break;
      case 11:
        v = static_cast<T>(i % 3 == 0 ? 1.0 + t * 1e-4 : i % 3 == 1 ? -5.0 + t * 1e-3 : t);
        break;
      case 12:
        v = static_cast<T>(noise > 2.5    ? limits.infinity()
                           : noise < -2.5 ? -limits.infinity()
                                          : noise);
        break;
      case 13: v = static_cast<T>(std::round(noise * 4) / 4); break;
      case 14: v = static_cast<T>(noise * (i % 4096 < 4000 ? 1e-30 : 1e30)); break;
      default: {
        const Bits bits = static_cast<Bits>(random());
        std::memcpy(&v, &bits, sizeof v);
      }
    }
    x[i] = v;
  }
  return bytes_of(x);
}

/// The modes of the program: each returns the exit status.
template <class T>
int check(const Spec& spec, ElementType type, std::uint64_t seed, bool quick);
/// With the spec's value as an absolute bound: sums need one step.
template <class T>
int sums(const Spec& spec, ElementType type, std::uint64_t seed, bool quick);
int replay(const Spec& spec, ElementType type);
int large(const Spec& spec, ElementType type);

}  // namespace mpress::test
