// What the tests of szp's sums share: payloads of known quanta, their sums, what those must be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "codec/checksum.hpp"
#include "codec/isa.hpp"
#include "codec/szp/format.hpp"
#include "support.hpp"

using mpress::Isa;
using mpress::Mode;
using mpress::codec::most_summands;
using mpress::codec::Status;
using mpress::codec::Summand;
namespace szp = mpress::codec::szp;

using Payload = std::vector<unsigned char>;
using Quanta = std::vector<std::int64_t>;

inline constexpr Isa all_isas[] = {Isa::portable, Isa::avx2, Isa::avx512};
inline constexpr double bound = 1e-3;

template <class T>
T step_of(double abs_bound = bound) {
  szp::Quantizer<T> z;
  szp::make_quantizer(abs_bound, z);
  return z.step;
}

inline szp::Header header_of(const Payload& payload) {
  szp::Header header;
  std::memcpy(&header, payload.data(), sizeof header);
  return header;
}

inline void sign(Payload& p) {
  const std::uint32_t sum = mpress::checksum(p.data(), 4, 0) +  //
                            mpress::checksum(p.data() + 8, p.size() - 8, 2);
  std::memcpy(p.data() + 4, &sum, 4);
}

inline constexpr const char* contents[] = {"zeros",  "constant", "smooth", "noise",
                                           "sparse", "offset",   "large",  "flips"};

// Quanta of moderate size, but for those of "large", which need more than 32-bit units in f64.
template <class T>
Quanta make(const std::string& name, std::size_t n, std::uint64_t seed) {
  SplitMix random{seed};
  Quanta q(n);
  const auto top = std::int64_t{1} << (sizeof(T) == 4 ? 20 : 40);
  double phase = static_cast<double>(seed % 97);
  for (std::size_t i = 0; i < n; ++i) {
    const auto r = static_cast<std::int64_t>(random.next() >> 2);
    const double t = phase += 0.003;
    if (name == "constant") q[i] = static_cast<std::int64_t>(seed % 1000) - 500;
    if (name == "smooth") q[i] = static_cast<std::int64_t>(std::rint(5000 * (t * t - 300 * t)));
    if (name == "smooth") q[i] %= top / 4;
    if (name == "noise") q[i] = r % 801 - 400;
    if (name == "sparse") q[i] = (i / 64 + seed) % 100 == 0 ? r % 31 - 15 : 0;
    if (name == "offset") q[i] = 100000 + r % 9;
    if (name == "large") q[i] = r % (2 * top) - top;
    if (name == "flips") q[i] = static_cast<std::int64_t>(i / 7) % 500 + (r % 11 == 0);
  }
  return q;
}

inline Quanta operator+(Quanta a, const Quanta& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

template <class T>
std::vector<T> values(const Quanta& q) {
  std::vector<T> x(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) x[i] = static_cast<T>(q[i]) * step_of<T>();
  return x;
}

template <class T>
Payload encode(const std::vector<T>& x, Mode mode = Mode::fast, double abs_bound = bound) {
  Payload out(szp::max_bytes(type_of<T>, x.size()));
  out.resize(szp::encode(type_of<T>, x.data(), x.size(), abs_bound, mode, out.data()));
  return out;
}

template <class T>
Payload encode(const Quanta& q, Mode mode = Mode::fast) {
  return encode(values<T>(q), mode);
}

template <class T>
Status add(const std::vector<Payload>& payloads, std::size_t n, Payload& out) {
  Payload sum(szp::max_bytes(type_of<T>, n));
  std::vector<Summand> summands;
  for (const Payload& one : payloads) summands.push_back({one.data(), one.size()});
  std::size_t bytes = 1;
  const Status status = szp::add(type_of<T>, summands, n, sum.data(), bytes);
  CHECK(status == Status::ok || bytes == 0, "%zu bytes of %s", bytes, status_text(status));
  sum.resize(bytes);
  out = std::move(sum);
  return status;
}

template <class T>
Status add(const Payload& a, const Payload& b, std::size_t n, Payload& out) {
  return add<T>({a, b}, n, out);
}

template <class T>
Payload sum_of(const Payload& a, const Payload& b, std::size_t n, const std::string& what) {
  Payload out;
  const Status status = add<T>(a, b, n, out);
  CHECK(status == Status::ok, "%s: %s", what.c_str(), status_text(status));
  return out;
}

// Whether decoding gives these quanta's multiples of the step.
template <class T>
bool holds(const Payload& payload, const Quanta& q) {
  std::vector<T> x(q.size());
  if (szp::decode(type_of<T>, payload.data(), payload.size(), x.data(), x.size()) != Status::ok) {
    return false;
  }
  return x == values<T>(q);
}

// The payload is what the encoder writes for the quanta, but for the bound and the checksum.
template <class T>
bool canonical(Payload payload, const Quanta& q, Mode mode) {
  szp::Header header = header_of(payload);
  header.bound = bound;
  std::memcpy(payload.data(), &header, sizeof header);
  sign(payload);
  return payload == encode<T>(q, mode);
}
