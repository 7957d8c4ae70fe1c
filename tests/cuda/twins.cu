// Host and CUDA twins side by side: twins check SPEC TYPE [SEED] compares them bit for bit on
// generated data, twins time SPEC TYPE FILE verifies and times them on a field.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "codec/codec_cuda.hpp"

namespace {

using namespace mpress;
using codec::cuda::Combine;
using codec::cuda::DecodeSegment;
using codec::cuda::EncodeSegment;
using codec::cuda::Result;

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

int failures = 0;
void fail(const std::string& what) {
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
  Device(Device&& other) noexcept : base_(other.base_), bytes_(other.bytes_) { other.base_ = nullptr; }
  ~Device() { cudaFree(base_); }
  unsigned char* data() const { return base_ + guard; }
  void put(const void* from, std::size_t bytes, std::size_t at = 0) {
    require(cudaMemcpy(data() + at, from, bytes, cudaMemcpyHostToDevice), "copy in");
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

// ---- Data -----------------------------------------------------------------------------------

using Bytes = std::vector<unsigned char>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

constexpr int patterns = 16;

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
      case 6: v = random() % 97 == 0 ? limits.quiet_NaN() : static_cast<T>(std::cos(t * 0.02)); break;
      case 7: v = static_cast<T>(std::ldexp(noise, static_cast<int>(random() % 240) - 120)); break;
      case 8: v = static_cast<T>(limits.denorm_min() * static_cast<T>(random() % 1000)); break;
      case 9: v = static_cast<T>(static_cast<float>(std::sin(t * 0.05))); break;
      case 10: v = i / 50 % 2 != 0 ? static_cast<T>(1e20) : static_cast<T>(std::sin(t * 0.01)); break;
      case 11: v = static_cast<T>(i % 3 == 0 ? 1.0 + t * 1e-4 : i % 3 == 1 ? -5.0 + t * 1e-3 : t); break;
      case 12: v = static_cast<T>(noise > 2.5 ? limits.infinity() : noise < -2.5 ? -limits.infinity() : noise); break;
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

// ---- Check ----------------------------------------------------------------------------------

template <class T>
T combined(Combine combine, T have, T value) {
  if (combine == Combine::replace) return value;
  if (combine == Combine::sum) return have + value;
  if (std::isnan(have) || std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
  return combine == Combine::min ? std::min(have, value) : std::max(have, value);
}

template <class T>
bool same(const unsigned char* a, const unsigned char* b, std::size_t count, bool bits) {
  if (count == 0 || std::memcmp(a, b, count * sizeof(T)) == 0) return true;
  if (bits) return false;
  for (std::size_t i = 0; i < count; ++i) {  // NaN and signs of zero are free in a reduction
    T x, y;
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    if (!(x == y || (std::isnan(x) && std::isnan(y)))) return false;
  }
  return true;
}

struct Case {
  std::string name;
  Bytes elements;
  std::size_t count;
  Bytes payload;  // the host's
  Bytes decoded;  // the host's
};

template <class T>
void check_batch(const Spec& spec, ElementType type, std::vector<Case>& cases, Workspace& work,
                 std::mt19937_64& random) {
  Results results(cases.size());
  std::vector<Device> elements, payloads, outputs;
  std::vector<EncodeSegment> encodes;
  std::vector<DecodeSegment> decodes;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    const std::size_t shift = sizeof(T) * (random() % 4);
    elements.emplace_back(c.elements.size() + shift);
    elements.back().put(c.elements.data(), c.elements.size(), shift);
    payloads.emplace_back(codec::max_payload_bytes(spec, type, c.count));
    outputs.emplace_back(c.elements.size());
    encodes.push_back({elements[i].data() + shift, c.count, payloads[i].data(), &results.host[i]});
  }
  require(codec::cuda::encode(spec, type, encodes, work.data, nullptr), "encode");
  require(cudaDeviceSynchronize(), "encode");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    const Result r = results.host[i];
    if (r.sequence == 0 || r.status != Status::ok) fail(c.name + ": no report of encoding");
    if (r.bytes != c.payload.size()) {
      fail(c.name + ": " + std::to_string(r.bytes) + " bytes, host " +
           std::to_string(c.payload.size()));
    } else {
      const Bytes got = payloads[i].get(r.bytes);
      const auto differs = std::mismatch(got.begin(), got.end(), c.payload.begin());
      if (differs.first != got.end()) {
        fail(c.name + ": payload differs at byte " +
             std::to_string(differs.first - got.begin()) + " of " + std::to_string(got.size()));
      }
    }
    if (!payloads[i].intact()) fail(c.name + ": wrote beyond the payload");
    payloads[i].put(c.payload.data(), c.payload.size());
  }
  for (Combine combine : {Combine::replace, Combine::sum, Combine::min, Combine::max}) {
    decodes.clear();
    std::vector<Bytes> before;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& c = cases[i];
      before.push_back(generate<T>(1, c.count, random));
      outputs[i].put(before[i].data(), before[i].size());
      decodes.push_back({payloads[i].data(), c.payload.size(), outputs[i].data(), c.count,
                         &results.host[i]});
      results.host[i] = {};
    }
    require(codec::cuda::decode(spec, type, decodes, combine, work.data, nullptr), "decode");
    require(cudaDeviceSynchronize(), "decode");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& c = cases[i];
      const std::string name = c.name + " combine " + std::to_string(static_cast<int>(combine));
      if (results.host[i].sequence == 0 || results.host[i].status != Status::ok) {
        fail(name + ": decoding reports " + status_text(results.host[i].status));
      }
      Bytes want(c.decoded.size());
      for (std::size_t k = 0; k < c.count; ++k) {
        T a, b;
        std::memcpy(&a, before[i].data() + k * sizeof(T), sizeof(T));
        std::memcpy(&b, c.decoded.data() + k * sizeof(T), sizeof(T));
        if (combine == Combine::replace) {
          std::memcpy(want.data() + k * sizeof(T), c.decoded.data() + k * sizeof(T), sizeof(T));
        } else {
          const T v = combined(combine, a, b);
          std::memcpy(want.data() + k * sizeof(T), &v, sizeof(T));
        }
      }
      const Bytes got = outputs[i].get(c.decoded.size());
      if (!same<T>(got.data(), want.data(), c.count, combine == Combine::replace)) {
        std::size_t k = 0;
        while (std::memcmp(got.data() + k * sizeof(T), want.data() + k * sizeof(T), sizeof(T)) == 0) ++k;
        fail(name + ": element " + std::to_string(k) + " differs");
      }
      if (!outputs[i].intact()) fail(name + ": wrote beyond the elements");
    }
  }
  // Damage: an error here where the host finds one, and nothing outside is touched.
  for (int round = 0; round < 6; ++round) {
    decodes.clear();
    std::vector<bool> host_ok;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& c = cases[i];
      Bytes bad = c.payload;
      std::size_t bytes = bad.size();
      if (!bad.empty()) {
        if (round == 0) bytes = random() % bad.size();
        if (round >= 1) bad[random() % std::min<std::size_t>(bad.size(), round < 3 ? 48 : bad.size())] ^= 1u << random() % 8;
        if (round == 4) for (int k = 0; k < 20; ++k) bad[random() % bad.size()] = static_cast<unsigned char>(random());
      }
      payloads[i].put(bad.data(), bad.size());
      Bytes out(c.elements.size() + 8);
      host_ok.push_back(codec::decode(spec, type, bad.data(), bytes, out.data(), c.count) == Status::ok);
      results.host[i] = {};
      decodes.push_back({payloads[i].data(), bytes, outputs[i].data(), c.count, &results.host[i]});
    }
    require(codec::cuda::decode(spec, type, decodes, Combine::replace, work.data, nullptr), "damaged");
    require(cudaDeviceSynchronize(), "damaged");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const bool ok = results.host[i].status == Status::ok;
      if (results.host[i].sequence == 0) fail(cases[i].name + ": no report of damage");
      if (ok != host_ok[i]) {
        fail(cases[i].name + ": damaged payload, round " + std::to_string(round) + ": host " + (host_ok[i] ? "ok" : "error") + ", device " +
             status_text(results.host[i].status));
      }
      if (!outputs[i].intact()) fail(cases[i].name + ": damage wrote beyond the elements");
    }
  }
}

template <class T>
int check(const Spec& spec, ElementType type, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::size_t> counts = {0,    1,    2,    3,    4,    5,     7,     8,
                                           31,   32,   33,   63,   127,  128,   129,   1000,
                                           1023, 1024, 1025, 2047, 2048, 2049,  4095,  4096,
                                           4097, 8191, 8193, 12288, 50001, 100003, 262144, 1000003};
  Workspace work(codec::cuda::workspace_bytes(spec, type, 40'000'000, 1000));
  std::size_t total = 0;
  const auto make = [&](int pattern, std::size_t count) {
    Case c;
    c.name = to_string(spec) + " " + element_name(type) + " pattern " + std::to_string(pattern) +
             " count " + std::to_string(count);
    c.count = count;
    c.elements = generate<T>(pattern, count, random);
    c.payload.resize(codec::max_payload_bytes(spec, type, count));
    c.payload.resize(codec::encode(spec, type, c.elements.data(), count, c.payload.data()));
    c.decoded.resize(c.elements.size());
    if (codec::decode(spec, type, c.payload.data(), c.payload.size(), c.decoded.data(), count) !=
        Status::ok) {
      fail(c.name + ": the host's own payload");
    }
    ++total;
    return c;
  };
  for (int pattern = 0; pattern < patterns; ++pattern) {
    std::vector<Case> batch;
    for (std::size_t count : counts) {
      std::vector<Case> one;
      one.push_back(make(pattern, count));
      if (count < 5000 || count % 2 != 0) check_batch<T>(spec, type, one, work, random);
      batch.push_back(std::move(one[0]));
    }
    check_batch<T>(spec, type, batch, work, random);
  }
  std::vector<Case> many;
  for (int i = 0; i < 700; ++i) many.push_back(make(i % patterns, random() % 20000));
  check_batch<T>(spec, type, many, work, random);
  Bytes state(work.bytes);
  require(cudaMemcpy(state.data(), work.data, work.bytes, cudaMemcpyDeviceToHost), "workspace");
  std::fill(state.begin(), state.begin() + 64, 0);
  for (unsigned char c : state) {
    if (c != 0) {
      fail("the workspace is not left zero");
      break;
    }
  }
  std::printf("%s %s: %zu cases, %d failures\n", to_string(spec).c_str(), element_name(type), total,
              failures);
  return failures != 0;
}

// ---- Time -----------------------------------------------------------------------------------

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class Call>
double event_ms(Call call, int repeat) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<double> times;
  for (int i = 0; i < repeat + 2; ++i) {
    cudaEventRecord(begin);
    call(i);
    cudaEventRecord(end);
    require(cudaEventSynchronize(end), "timing");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 2) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return median(times);
}

/// Host time from the call until the report is seen.
template <class Call>
double poll_us(const Result* result, Call call, int repeat) {
  std::vector<double> times;
  const volatile std::uint32_t* sequence = &result->sequence;
  for (int i = 0; i < repeat; ++i) {
    require(cudaDeviceSynchronize(), "poll");
    const std::uint32_t before = *sequence;
    const auto start = std::chrono::steady_clock::now();
    call(i);
    while (*sequence == before) {
    }
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return median(times);
}

int time_field(const Spec& asked, ElementType type, const char* path, bool small) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return std::printf("%s: cannot be read\n", path), 2;
  std::fseek(file, 0, SEEK_END);
  Bytes field(static_cast<std::size_t>(std::ftell(file)));
  std::rewind(file);
  if (std::fread(field.data(), 1, field.size(), file) != field.size()) return 2;
  std::fclose(file);
  const std::size_t size = element_size(type);
  const std::size_t count = field.size() / size;
  const Spec spec = codec::resolve(asked, type, field.data(), count);

  Bytes want(codec::max_payload_bytes(spec, type, count));
  want.resize(codec::encode(spec, type, field.data(), count, want.data()));
  Bytes decoded(field.size());
  codec::decode(spec, type, want.data(), want.size(), decoded.data(), count);

  Device in(field.size()), out(field.size()), payload(codec::max_payload_bytes(spec, type, count));
  in.put(field.data(), field.size());
  Workspace work(codec::cuda::workspace_bytes(spec, type, count, 256));
  Results results(256);
  const double copy = event_ms([&](int) { cudaMemcpyAsync(out.data(), in.data(), field.size(), cudaMemcpyDeviceToDevice); }, 15);
  const EncodeSegment e{in.data(), count, payload.data(), results.host};
  const double encode_ms = event_ms([&](int) { require(codec::cuda::encode(spec, type, {&e, 1}, work.data, nullptr), "encode"); }, 25);
  const Bytes got = payload.get(std::min<std::size_t>(results.host[0].bytes, want.size()));
  bool verified = got == want;
  payload.put(want.data(), want.size());
  const DecodeSegment d{payload.data(), want.size(), out.data(), count, results.host};
  const double decode_ms = event_ms([&](int) { require(codec::cuda::decode(spec, type, {&d, 1}, Combine::replace, work.data, nullptr), "decode"); }, 25);
  const bool decoded_well = results.host[0].status == Status::ok && out.get(field.size()) == decoded;
  const double sum_ms = event_ms([&](int) { require(codec::cuda::decode(spec, type, {&d, 1}, Combine::sum, work.data, nullptr), "decode"); }, 15);
  const double gb = static_cast<double>(field.size()) / 1e6;
  std::printf("%-22s %s %-28s ratio %7.3f  encode %7.1f  decode %7.1f  sum %7.1f  copy %7.1f GB/s  %s %s\n",
              to_string(spec).c_str(), element_name(type), path, double(field.size()) / double(want.size()),
              gb / encode_ms, gb / decode_ms, gb / sum_ms, gb / copy, verified ? "bytes ok" : "BYTES DIFFER",
              decoded_well ? "values ok" : "VALUES DIFFER");
  if (small) {
    for (std::size_t bytes = 65536; bytes <= field.size(); bytes *= 4) {
      const std::size_t n = bytes / size;
      const std::size_t places = std::min<std::size_t>(field.size() / bytes, 64);
      const std::size_t stride = field.size() / places / 256 * 256;
      std::vector<DecodeSegment> pieces;
      std::vector<Device> store;
      for (std::size_t i = 0; i < places; ++i) {
        store.emplace_back(codec::max_payload_bytes(spec, type, n));
        const EncodeSegment piece{in.data() + i * stride, n, store[i].data(), results.host};
        require(codec::cuda::encode(spec, type, {&piece, 1}, work.data, nullptr), "encode");
        require(cudaDeviceSynchronize(), "encode");
        pieces.push_back({store[i].data(), results.host[0].bytes, out.data() + i * stride, n, results.host});
      }
      const auto encode = [&](int i) {
        const EncodeSegment piece{in.data() + (i % places) * stride, n, store[i % places].data(), results.host};
        require(codec::cuda::encode(spec, type, {&piece, 1}, work.data, nullptr), "encode");
      };
      const auto decode = [&](int i) {
        require(codec::cuda::decode(spec, type, {&pieces[i % places], 1}, Combine::replace, work.data, nullptr), "decode");
      };
      const int repeat = bytes < (64u << 20) ? 60 : 15;
      std::printf("  %9zu bytes: encode %8.1f us, polled %8.1f us; decode %8.1f us, polled %8.1f us\n", bytes,
                  event_ms(encode, repeat) * 1e3, poll_us(results.host, encode, repeat),
                  event_ms(decode, repeat) * 1e3, poll_us(results.host, decode, repeat));
    }
    // 64 segments of 256 KB beside one of 16 MB.
    const std::size_t n = (256u << 10) / size;
    std::vector<EncodeSegment> segments;
    std::vector<DecodeSegment> back;
    std::vector<Device> store;
    for (std::size_t i = 0; i < 64; ++i) {
      store.emplace_back(codec::max_payload_bytes(spec, type, n));
      segments.push_back({in.data() + i * n * size, n, store[i].data(), &results.host[i]});
    }
    const double batch = event_ms([&](int) { require(codec::cuda::encode(spec, type, segments, work.data, nullptr), "batch"); }, 40);
    for (std::size_t i = 0; i < 64; ++i) back.push_back({store[i].data(), results.host[i].bytes, out.data() + i * n * size, n, &results.host[i]});
    const double unbatch = event_ms([&](int) { require(codec::cuda::decode(spec, type, back, Combine::replace, work.data, nullptr), "batch"); }, 40);
    const EncodeSegment whole{in.data(), 64 * n, payload.data(), results.host};
    const double one = event_ms([&](int) { require(codec::cuda::encode(spec, type, {&whole, 1}, work.data, nullptr), "one"); }, 40);
    const DecodeSegment whole_back{payload.data(), results.host[0].bytes, out.data(), 64 * n, results.host};
    const double unone = event_ms([&](int) { require(codec::cuda::decode(spec, type, {&whole_back, 1}, Combine::replace, work.data, nullptr), "one"); }, 40);
    std::printf("  64 x 256 KB: encode %.1f us, decode %.1f us; 16 MB: %.1f us, %.1f us\n", batch * 1e3, unbatch * 1e3, one * 1e3, unone * 1e3);
  }
  return !(verified && decoded_well);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::printf("usage: twins check SPEC f32|f64 [SEED] | twins time SPEC f32|f64 FILE [small]\n"), 2;
  Spec spec;
  std::string error;
  const ElementType type = std::string(argv[3]) == "f64" ? ElementType::f64 : ElementType::f32;
  if (!parse_spec(argv[2], spec, error) || !validate_spec(spec, type, error)) return std::printf("%s\n", error.c_str()), 2;
  if (std::string(argv[1]) == "time" && argc > 4) return time_field(spec, type, argv[4], argc > 5);
  const std::uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  return type == ElementType::f32 ? check<float>(spec, type, seed) : check<double>(spec, type, seed);
}
