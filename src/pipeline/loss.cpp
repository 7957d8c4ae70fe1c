#include "pipeline/loss.hpp"

#include <algorithm>

#include "codec/codec.hpp"
#include "codec/error.hpp"
#include "codec/float_environment.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

/// Bytes of elements that are measured at a time: whole blocks of every codec.
constexpr std::size_t stretch = 1 << 20;

}  // namespace

Loss Loss::of(const Spec& asked, const Spec& resolved, int device, double measured) {
  if (!resolved.lossy()) return {};
  Loss loss{true, std::nullopt, measured};
  const bool is_found = asked.bound != Bound::rel || resolved.value != 0 || device == gpu::host;
  if (resolved.codec == Codec::szp && resolved.bound == Bound::abs && is_found) {
    loss.bound = compute([&] { return resolved.value + resolved.slack; });
  }
  return loss;
}

void note(trace::Row& row, const Loss& loss) {
  if (!loss.is_any) return;
  trace::add(row.unbounded, loss.bound ? 0 : 1);
  trace::raise_error(row.bound, loss.bound.value_or(0));
  trace::raise_error(row.measured_error, loss.measured);
}

bool measures_error(const Runtime& runtime, const Spec& spec) {
  return runtime.config.measures_error && spec.codec == Codec::zfp;
}

Status measure_error(Runtime& runtime, const Spec& spec, const Region& region, double& error) {
  error = 0;
  const std::size_t width = element_size(region.type);
  const std::size_t most = std::min<std::size_t>(stretch, region.bytes());
  const std::size_t room = codec::max_payload_bytes(spec, region.type, most / width);
  const memory::Buffer payload = runtime.pool.take(room);
  const memory::Buffer decoded = runtime.pool.take(most);
  memory::Buffer copied;
  QueueLease queue;
  if (region.device != gpu::host) {
    copied = runtime.devices.take_pinned(region.device, most);
    queue = runtime.devices.queue(region);
    if (!copied || !queue) return short_of_memory(runtime, region.device);
  }
  if (!payload || !decoded) return Status::no_memory;
  for (std::uint64_t offset = 0; offset < region.bytes(); offset += stretch) {
    const std::size_t bytes = std::min<std::uint64_t>(stretch, region.bytes() - offset);
    const std::byte* elements = region.data + offset;
    if (copied) {
      const Status status =
          runtime.devices.wait(*queue, queue->copy(copied.data(), elements, bytes));
      if (!status.is_ok()) return status;
      elements = copied.data();
    }
    const std::size_t count = bytes / width;
    const std::size_t encoded = codec::encode(spec, region.type, elements, count, payload.data());
    if (codec::decode(spec, region.type, payload.data(), encoded, decoded.data(), count) !=
        codec::Status::ok) {
      return Status::corrupt;
    }
    error =
        Outcome::looser(error, codec::largest_error(region.type, elements, decoded.data(), count));
  }
  return Status::ok;
}

}  // namespace mpress::engine
