// Both twins on the same data: bytes, values, reports, and what happens to damaged payloads.
#include "cuda/twins.hpp"

namespace mpress::test {
namespace {

template <class T>
T combined(Combine combine, T have, T value) {
  if (combine == Combine::replace) return value;
  if (combine == Combine::sum) return have + value;
  if (combine == Combine::prod) return have * value;
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
                 std::mt19937_64& random, RangeOf range = RangeOf::segment) {
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
  require(codec::cuda::encode(spec, type, encodes, work.data, nullptr, range), "encode");
  require(cudaDeviceSynchronize(), "encode");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    const Result r = results.host[i];
    if (r.sequence == 0 || r.status != codec::Status::ok) fail(c.name + ": no report of encoding");
    if (r.bytes != c.payload.size()) {
      fail(c.name + ": " + std::to_string(r.bytes) + " bytes, host " +
           std::to_string(c.payload.size()));
    } else {
      const Bytes got = payloads[i].get(r.bytes);
      const auto differs = std::mismatch(got.begin(), got.end(), c.payload.begin());
      if (differs.first != got.end()) {
        fail(c.name + ": payload differs at byte " + std::to_string(differs.first - got.begin()) +
             " of " + std::to_string(got.size()));
      }
    }
    if (!payloads[i].intact()) fail(c.name + ": wrote beyond the payload");
    payloads[i].put(c.payload.data(), c.payload.size());
  }
  for (Combine combine :
       {Combine::replace, Combine::sum, Combine::min, Combine::max, Combine::prod}) {
    decodes.clear();
    std::vector<Bytes> before;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& c = cases[i];
      before.push_back(generate<T>(1, c.count, random));
      outputs[i].put(before[i].data(), before[i].size());
      decodes.push_back(
          {payloads[i].data(), c.payload.size(), outputs[i].data(), c.count, &results.host[i]});
      results.host[i] = {};
    }
    require(codec::cuda::decode(spec, type, decodes, combine, work.data, nullptr), "decode");
    require(cudaDeviceSynchronize(), "decode");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& c = cases[i];
      const std::string name = c.name + " combine " + std::to_string(static_cast<int>(combine));
      if (results.host[i].sequence == 0 || results.host[i].status != codec::Status::ok) {
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
        while (std::memcmp(got.data() + k * sizeof(T), want.data() + k * sizeof(T), sizeof(T)) == 0)
          ++k;
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
        if (round >= 1)
          bad[random() % std::min<std::size_t>(bad.size(), round < 3 ? 48 : bad.size())] ^=
              1u << random() % 8;
        if (round == 4)
          for (int k = 0; k < 20; ++k)
            bad[random() % bad.size()] = static_cast<unsigned char>(random());
      }
      payloads[i].put(bad.data(), bad.size());
      Bytes out(c.elements.size() + 8);
      host_ok.push_back(codec::decode(spec, type, bad.data(), bytes, out.data(), c.count) ==
                        codec::Status::ok);
      results.host[i] = {};
      decodes.push_back({payloads[i].data(), bytes, outputs[i].data(), c.count, &results.host[i]});
    }
    require(codec::cuda::decode(spec, type, decodes, Combine::replace, work.data, nullptr),
            "damaged");
    require(cudaDeviceSynchronize(), "damaged");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const bool ok = results.host[i].status == codec::Status::ok;
      if (results.host[i].sequence == 0) fail(cases[i].name + ": no report of damage");
      if (ok != host_ok[i]) {
        fail(cases[i].name + ": damaged payload, round " + std::to_string(round) + ": host " +
             (host_ok[i] ? "ok" : "error") + ", device " + status_text(results.host[i].status));
      }
      if (!outputs[i].intact()) fail(cases[i].name + ": damage wrote beyond the elements");
    }
  }
}

}  // namespace

template <class T>
int check(const Spec& spec, ElementType type, std::uint64_t seed, bool quick) {
  std::mt19937_64 random(seed);
  const std::vector<std::size_t> few = {0, 3, 33, 2049, 9001};
  const std::vector<std::size_t> all = {0,    1,    2,    3,     4,     5,      7,      8,
                                        31,   32,   33,   63,    127,   128,    129,    1000,
                                        1023, 1024, 1025, 2047,  2048,  2049,   4095,   4096,
                                        4097, 8191, 8193, 12288, 50001, 100003, 262144, 1000003};
  const std::vector<std::size_t>& counts = quick ? few : all;
  Workspace work(codec::cuda::workspace_bytes(spec, type, 40'000'000, 1000));
  std::size_t total = 0;
  const auto encode = [&](Case& c, const Spec& by) {
    c.payload.resize(codec::max_payload_bytes(spec, type, c.count));
    c.payload.resize(codec::encode(by, type, c.elements.data(), c.count, c.payload.data()));
    c.decoded.resize(c.elements.size());
    if (codec::decode(spec, type, c.payload.data(), c.payload.size(), c.decoded.data(), c.count) !=
        codec::Status::ok) {
      fail(c.name + ": the host's own payload");
    }
  };
  const auto make = [&](int pattern, std::size_t count) {
    Case c;
    c.name = to_string(spec) + " " + element_name(type) + " pattern " + std::to_string(pattern) +
             " count " + std::to_string(count);
    c.count = count;
    c.elements = generate<T>(pattern, count, random);
    encode(c, spec);
    ++total;
    return c;
  };
  const auto make_all = [&](std::vector<std::size_t> sizes) {
    std::vector<Case> made;
    for (const std::size_t count : sizes) made.push_back(make(made.size() % patterns, count));
    return made;
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
  for (int i = 0; i < (quick ? 40 : 700); ++i) many.push_back(make(i % patterns, random() % 20000));
  check_batch<T>(spec, type, many, work, random);
  if (!quick) {  // long ones, done in their order
    std::vector<Case> batch = make_all({2'000'003, 1'700'000, 500'000, 2'100'000});
    check_batch<T>(spec, type, batch, work, random);
  }
  if (spec.bound == Bound::rel) {
    std::vector<Case> batch = make_all({quick ? 5000u : 200'000u, 0, 3, 2049, 70'001, 1});
    Bytes together;
    for (const Case& c : batch) {
      together.insert(together.end(), c.elements.begin(), c.elements.end());
    }
    const Spec resolved = codec::resolve(spec, type, together.data(), together.size() / sizeof(T));
    for (Case& c : batch) encode(c, resolved);
    check_batch<T>(spec, type, batch, work, random, RangeOf::call);
    check_batch<T>(spec, type, batch, work, random, RangeOf::call);
  }
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

template int check<float>(const Spec&, ElementType, std::uint64_t, bool);
template int check<double>(const Spec&, ElementType, std::uint64_t, bool);

}  // namespace mpress::test
