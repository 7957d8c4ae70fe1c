#include "policy/policy.hpp"

#include <algorithm>
#include <bit>

namespace mpress::policy {
namespace {

constexpr std::uint32_t first_probes = 2;  // enough to see a ratio and a warm codec
constexpr double probe_share = 0.01;       // of the wire time
constexpr float newest_weight = 0.25f;

void average(std::atomic<float>& into, double value) {
  const float old = into.load(std::memory_order_relaxed);
  const auto now = static_cast<float>(value);
  into.store(old == 0 ? now : old + newest_weight * (now - old), std::memory_order_relaxed);
}

}  // namespace

void Policy::configure(bool force, double link_rate) {
  force_ = force;
  ns_per_wire_byte_ = link_rate > 0 ? 1e9 / link_rate : 0;
}

Policy::Seen& Policy::seen(Codec codec, std::size_t bytes) {
  const auto size_class = static_cast<std::size_t>(std::bit_width(bytes));
  return seen_[static_cast<std::size_t>(codec)][std::min(size_class, size_classes - 1)];
}

bool Policy::worth_it(Codec codec, std::size_t bytes) {
  if (force_) return true;
  if (ns_per_wire_byte_ == 0) return false;
  Seen& s = seen(codec, bytes);
  if (s.samples.load(std::memory_order_relaxed) < first_probes) return true;
  const double ratio_inverse = s.wire_per_raw.load(std::memory_order_relaxed);
  const double encode = s.encode_ns_per_byte.load(std::memory_order_relaxed);
  const double decode = s.decode_ns_per_byte.load(std::memory_order_relaxed);
  const double codec_ns = encode + (decode > 0 ? decode : encode);
  if (codec_ns + ratio_inverse * ns_per_wire_byte_ < ns_per_wire_byte_) return true;
  const double interval = codec_ns / (probe_share * ns_per_wire_byte_);
  const std::uint32_t skipped = s.skipped.fetch_add(1, std::memory_order_relaxed) + 1;
  if (skipped < interval) return false;
  s.skipped.store(0, std::memory_order_relaxed);
  return true;
}

void Policy::encoded(Codec codec, std::size_t raw_bytes, std::size_t wire_bytes, std::uint64_t ns) {
  if (raw_bytes == 0) return;
  Seen& s = seen(codec, raw_bytes);
  average(s.wire_per_raw, static_cast<double>(wire_bytes) / static_cast<double>(raw_bytes));
  average(s.encode_ns_per_byte, static_cast<double>(ns) / static_cast<double>(raw_bytes));
  s.samples.fetch_add(1, std::memory_order_relaxed);
}

void Policy::decoded(Codec codec, std::size_t raw_bytes, std::uint64_t ns) {
  if (raw_bytes == 0) return;
  average(seen(codec, raw_bytes).decode_ns_per_byte,
          static_cast<double>(ns) / static_cast<double>(raw_bytes));
}

}  // namespace mpress::policy
