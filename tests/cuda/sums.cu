// Sums of payloads by both twins: bytes and status, also of damaged payloads and at the limits.
#include "codec/checksum.hpp"
#include "codec/szp/format.hpp"
#include "cuda/twins.hpp"

namespace mpress::test {
namespace {

namespace szp = codec::szp;

constexpr int kinds = 10;

/// Elements that are multiples of the step, but for the last kinds.
template <class T>
std::vector<T> summand(int kind, std::size_t count, T step, std::mt19937_64& random) {
  std::vector<T> x(count);
  const double start = static_cast<double>(random() % 1000);
  const auto level = static_cast<double>(random() % 2000) - 1000;
  for (std::size_t i = 0; i < count; ++i) {
    const auto t = static_cast<double>(i) + start;
    const auto noise = static_cast<double>(random() % 2001) - 1000;
    double q = 0;
    switch (kind) {
      case 0: break;
      case 1: q = level; break;
      case 2: q = 5000 * std::sin(t * 0.003) + 100 * std::sin(t * 0.05); break;
      case 3: q = noise; break;
      case 4: q = i / 64 % 100 == 3 ? noise / 50 : 0; break;
      case 5: q = 100000 + noise / 200; break;
      case 6: q = sizeof(T) == 4 ? noise * 4000 : noise * 0x1p40; break;  // most of the range
      case 7: q = (i / 4096 % 2 != 0 ? 1e4 : 1) * noise * (sizeof(T) == 4 ? 1e-1 : 1e3); break;
      case 8: q = i % 9001 == 77 ? 1e30 : noise; break;  // exceptions
      default: q = i / 5000 % 3 == 2 ? std::ldexp(noise, static_cast<int>(random() % 90)) : noise;
    }
    x[i] = static_cast<T>(kind < 8 ? std::rint(q) : q) * step;
  }
  return x;
}

/// Payloads to be added, two or more, or elements.
struct Case {
  std::string name;
  std::size_t count;
  std::vector<Bytes> summands;
  unsigned elements = 0;  ///< a bit for each summand that is none of payloads
  bool decodes = false;   ///< the sum's elements are wanted, too
};

void sign(Bytes& payload) {
  if (payload.size() < sizeof(szp::Header)) return;
  const std::uint32_t sum =
      checksum(payload.data(), 4, 0) + checksum(payload.data() + 8, payload.size() - 8, 2);
  std::memcpy(payload.data() + 4, &sum, 4);
}

/// Adds what every case has on the device, in one call, and compares with the host. Returns the
/// host's sums.
std::vector<Bytes> compare(const Spec& spec, ElementType type, const std::vector<Case>& cases,
                           Workspace& work, std::mt19937_64& random) {
  // All in one buffer, with gaps between that nobody may write.
  constexpr std::size_t gap = 64;
  std::size_t end = 0;
  const auto place = [&](std::size_t bytes) {
    const std::size_t begin = end;
    end += (bytes + gap + 255) / 256 * 256;
    return begin;
  };
  std::vector<std::vector<std::size_t>> places(cases.size());
  std::vector<std::size_t> sums, decoded;
  std::size_t payloads = 0;
  const std::size_t width = element_size(type);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t k = 0; k < cases[i].summands.size(); ++k) {
      const bool is_shifted = (cases[i].elements >> k & 1) != 0 && random() % 2 != 0;
      places[i].push_back(place(cases[i].summands[k].size() + width) + (is_shifted ? width : 0));
    }
    sums.push_back(place(szp::max_bytes(type, cases[i].count)));
    decoded.push_back(place((cases[i].count + 1) * width) + (random() % 2 != 0 ? width : 0));
    payloads += cases[i].summands.size();
  }
  Bytes before(end, 0xA5);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t k = 0; k < places[i].size(); ++k) {
      std::ranges::copy(cases[i].summands[k], before.data() + places[i][k]);
    }
  }
  Device memory(end);
  memory.put(before.data(), end);
  Results results(cases.size()), reports(payloads);
  std::vector<std::vector<codec::cuda::Summand>> summands(cases.size());
  std::vector<AddSegment> segments;
  std::size_t next_report = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const bool is_reported = random() % 2 != 0;  // sizes that only the device knows
    for (std::size_t k = 0; k < places[i].size(); ++k) {
      const std::size_t bytes = cases[i].summands[k].size();
      Result& report = reports.host[next_report++];
      report = {bytes, codec::Status::ok, 1};
      const bool are_elements = (cases[i].elements >> k & 1) != 0;
      summands[i].push_back({memory.data() + places[i][k], bytes,
                             is_reported && !are_elements ? &report : nullptr, are_elements});
    }
    segments.push_back({summands[i], cases[i].count, memory.data() + sums[i], &results.host[i],
                        cases[i].decodes ? memory.data() + decoded[i] : nullptr});
  }
  require(codec::cuda::add(spec, type, segments, work.data, nullptr), "add");
  require(cudaDeviceSynchronize(), "add");
  Bytes after = memory.get(end);
  std::vector<Bytes> host(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const Result r = results.host[i];
    const std::size_t room = szp::max_bytes(type, c.count);
    host[i].resize(room);
    std::vector<codec::Summand> given;
    for (std::size_t k = 0; k < c.summands.size(); ++k) {
      const Bytes& one = c.summands[k];
      given.push_back({one.data(), one.size(), (c.elements >> k & 1) != 0});
    }
    std::size_t bytes = 0;
    Bytes elements(c.count * width);
    const codec::Status status = szp::add(type, given, c.count, host[i].data(), bytes,
                                   {spec.value, spec.mode}, c.decodes ? elements.data() : nullptr);
    host[i].resize(bytes);
    if (r.sequence == 0) fail(c.name + ": no report");
    if (r.status != status || r.bytes != bytes) {
      fail(c.name + ": " + status_text(r.status) + ", " + std::to_string(r.bytes) +
           " bytes; host: " + status_text(status) + ", " + std::to_string(bytes));
    } else if (!std::equal(host[i].begin(), host[i].end(), after.data() + sums[i])) {
      fail(c.name + ": other bytes than the host's");
    }
    if (c.decodes && status == codec::Status::ok &&
        !std::equal(elements.begin(), elements.end(), after.data() + decoded[i])) {
      fail(c.name + ": other elements than the host's");
    }
    // What is left must be as it was.
    std::fill_n(after.data() + sums[i], room, 0xA5);
    if (c.decodes) std::fill_n(after.data() + decoded[i], c.count * width, 0xA5);
  }
  if (after != before || !memory.intact()) fail("wrote beyond the payload of a sum");
  return host;
}

/// Damage of all sorts: cut, or changed anywhere, more often in header, directory and heads of
/// units, with the checksum that belongs to it or not.
Bytes damaged(const Bytes& payload, std::mt19937_64& random) {
  Bytes bad = payload;
  const auto kind = random() % 8;
  if (kind == 0) bad.resize(random() % (bad.size() + 1));
  if (kind == 1) bad.resize(bad.size() + 1 + random() % 9);
  if (kind >= 2 && !bad.empty()) {
    const std::size_t reach[] = {8, 32, 48, 120, 600, bad.size()};
    const std::size_t span = std::min(bad.size(), reach[random() % 6]);
    for (auto k = random() % 3 + 1; k > 0; --k) {
      unsigned char& byte = bad[random() % span];
      if (random() % 2 != 0) {
        byte ^= static_cast<unsigned char>(1u << random() % 8);
      } else {
        byte = static_cast<unsigned char>(random());
      }
    }
  }
  if (random() % 4 != 0) sign(bad);
  return bad;
}

}  // namespace

template <class T>
int sums(const Spec& like, ElementType type, std::uint64_t seed, bool quick) {
  Spec spec = like;
  spec.bound = Bound::abs;
  std::mt19937_64 random(seed);
  szp::Quantizer<T> z;
  szp::make_quantizer(spec.value, z);
  Workspace work(codec::cuda::workspace_bytes(spec, type, 60'000'000, 1000));
  std::size_t total = 0;
  const auto encoded = [&](const std::vector<T>& x) {
    Bytes out(szp::max_bytes(type, x.size()));
    const Mode mode = random() % 4 == 0 ? Mode::dense : spec.mode;
    out.resize(szp::encode(type, x.data(), x.size(), spec.value, mode, out.data()));
    return out;
  };
  const auto run = [&](const std::vector<Case>& cases) {
    total += cases.size();
    return compare(spec, type, cases, work, random);
  };
  const auto name = [](const char* what, int a, int b, std::size_t count) {
    return std::string(what) + ", kinds " + std::to_string(a) + " and " + std::to_string(b) +
           ", count " + std::to_string(count);
  };

  // Any two kinds; summands that cancel; sums of sums, up to where they end.
  const std::vector<std::size_t> few = {0, 9, 2049, 9001};
  const std::vector<std::size_t> all = {0,    1,    2,    31,   33,   100,  2016,  2047,
                                        2048, 2049, 4095, 4096, 4097, 8192, 20001, 100003};
  for (std::size_t count : quick ? few : all) {
    std::vector<Case> cases;
    for (int a = 0; a < kinds; ++a) {
      for (int b = quick ? a : 0; b < kinds; ++b) {
        const std::vector<T> x = summand<T>(a, count, z.step, random);
        cases.push_back({name("sum", a, b, count),
                         count,
                         {encoded(x), encoded(summand<T>(b, count, z.step, random))}});
        if (a != b) continue;
        std::vector<T> minus(x);
        for (T& value : minus) value = -value;
        cases.push_back({name("nothing left", a, b, count), count, {encoded(x), encoded(minus)}});
      }
      // Any number of kinds beside this one.
      Case many{name("many", a, 0, count), count, {}};
      const std::size_t summands = 3 + random() % (codec::most_summands - 2);
      while (many.summands.size() < summands) {
        const int kind = many.summands.empty() ? a : static_cast<int>(random() % 8);
        many.summands.push_back(encoded(summand<T>(kind, count, z.step, random)));
      }
      cases.push_back(std::move(many));
    }
    run(cases);
    for (int round = 0; round < (quick ? 2 : 8); ++round) {
      std::vector<Bytes> sums = run(cases);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (sums[i].empty()) continue;
        cases[i].name += "+";
        cases[i].summands[1] = round % 2 == 0 ? sums[i] : cases[i].summands[0];
        cases[i].summands[0] = sums[i];
      }
    }
  }

  // Elements in the place of payloads, some or all, and the sum's elements.
  const auto raw = [](const std::vector<T>& x) {
    Bytes bytes(x.size() * sizeof(T));
    if (!x.empty()) std::memcpy(bytes.data(), x.data(), bytes.size());
    return bytes;
  };
  for (std::size_t count : quick ? few : all) {
    std::vector<Case> some;
    for (int turn = 0; turn < (quick ? 10 : 60); ++turn) {
      const int a = turn % kinds;
      Case c{name("elements", a, turn, count), count, {}};
      c.decodes = random() % 4 != 0;
      const std::size_t summands = 2 + random() % (codec::most_summands - 1);
      const std::size_t first = random() % summands;
      for (std::size_t k = 0; k < summands; ++k) {
        const int kind = k == first ? a : static_cast<int>(random() % 8);
        std::vector<T> x = summand<T>(kind, count, z.step, random);
        const double off = static_cast<double>(random() % 100) / 250;  // not on the grid
        for (T& value : x) value += static_cast<T>(off) * z.step;
        const bool are_elements = k == first || random() % 3 == 0;
        c.summands.push_back(are_elements ? raw(x) : encoded(x));
        c.elements |= are_elements ? 1u << k : 0;
      }
      some.push_back(std::move(c));
    }
    run(some);
  }

  // Payloads that do not belong together, and damage.
  std::vector<Case> cases;
  for (int i = 0; i < (quick ? 60 : 6000); ++i) {
    const int a = static_cast<int>(random() % kinds);
    const int b = static_cast<int>(random() % kinds);
    const std::size_t count = random() % (i % 3 == 0 ? 20000 : 300);
    Case c{name("damage", a, b, count), count, {encoded(summand<T>(a, count, z.step, random))}};
    const std::size_t summands = random() % 2 == 0 ? 2 : 3 + random() % (codec::most_summands - 2);
    while (c.summands.size() < summands) {
      c.summands.push_back(encoded(summand<T>(b, count, z.step, random)));
    }
    if (random() % 8 == 0) {
      const double other = random() % 2 == 0 ? 2 * spec.value : 0;  // another step; raw
      const std::vector<T> x = summand<T>(b, count, z.step, random);
      Bytes& odd = c.summands[random() % summands];
      odd.resize(szp::max_bytes(type, count));
      odd.resize(szp::encode(type, x.data(), count, other, spec.mode, odd.data()));
    }
    for (auto bad = random() % 3; bad > 0; --bad) {
      Bytes& one = c.summands[random() % summands];
      one = damaged(one, random);
    }
    c.name += " case " + std::to_string(i);
    cases.push_back(std::move(c));
  }
  run(cases);

  if (!quick) {  // places that several thousand units before them have
    cases.clear();
    for (int kind : {2, 4, 3}) {
      const std::size_t count = 3000 * szp::unit_elements(type) + 1234 * kind;
      const std::vector<T> x = summand<T>(kind, count, z.step, random);
      const std::size_t summands = kind == 4 ? 5 : 2;
      cases.push_back({name("many units", kind, kind, count), count, {}});
      cases.back().summands.assign(summands, encoded(x));
      cases.push_back(cases.back());
      cases.back().name += " damaged";
      Bytes& last = cases.back().summands.back();
      last[last.size() / 2] ^= 1;
    }
    run(cases);
  }
  Bytes state(work.bytes);
  require(cudaMemcpy(state.data(), work.data, work.bytes, cudaMemcpyDeviceToHost), "workspace");
  std::fill(state.begin(), state.begin() + 64, 0);
  if (std::any_of(state.begin(), state.end(), [](unsigned char c) { return c != 0; })) {
    fail("the workspace is not left zero");
  }
  std::printf("sums, %s %s: %zu sums, %d failures\n", to_string(spec).c_str(), element_name(type),
              total, failures);
  return failures != 0;
}

template int sums<float>(const Spec&, ElementType, std::uint64_t, bool);
template int sums<double>(const Spec&, ElementType, std::uint64_t, bool);

}  // namespace mpress::test
