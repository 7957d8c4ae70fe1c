#include "coll/blocks/copy_block.hpp"

#include <algorithm>

#include "core/plain_layout.hpp"
#include "core/regular_copy.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

/// Within memory of the host, which the CPU need not read.
Status copy_on_host(Runtime& runtime, const BlockData& from, const Location& from_place,
                    const BlockData& to, const Location& to_place) {
  const bool are_readable = from_place.is_readable && to_place.is_readable;
  const Layout &source = *from.layout, &target = *to.layout;
  if (are_readable &&
      copy_regular({from.data, &source, from.count}, {to.data, &target, to.count})) {
    return Status::ok;
  }
  const std::size_t bytes = std::min(from.bytes, to.bytes);
  if (source.contiguous && !(target.contiguous && to_place.is_readable)) {
    return target.unpack(static_cast<const std::byte*>(from.data), bytes, to.data, to.count,
                         are_readable);
  }
  memory::Buffer packed;
  const bool goes_straight = target.contiguous && to_place.is_readable && to.bytes >= from.bytes;
  auto* bare = static_cast<std::byte*>(to.data);
  if (!goes_straight) {
    packed = runtime.pool.take(from.bytes);
    if (!packed) return Status::no_memory;
    bare = packed.data();
  }
  if (!source.pack(from.data, from.count, from_place.is_readable, bare, from.bytes)) {
    return Status::copy_failed;
  }
  return packed ? target.unpack(bare, bytes, to.data, to.count, to_place.is_readable) : Status::ok;
}

}  // namespace

BlockData bytes_at(std::byte* data, std::size_t bytes) {
  return {data, data ? static_cast<std::int64_t>(bytes) : 0, plain_layout({}), bytes};
}

BlockData packed_at(std::byte* at, const BlockData& block) {
  const auto units = static_cast<std::int64_t>(block.bytes / block.layout->packed_unit());
  return {at, units, plain_layout(block.layout->element), block.bytes};
}

Status copy_block(Runtime& runtime, const BlockData& from, const BlockData& to,
                  CopyUnderWay* under_way) {
  const Layout &source = *from.layout, &target = *to.layout;
  const Location from_place = locate(runtime, from.data, source);
  const Location to_place = locate(runtime, to.data, target);
  const int from_device = from_place.device, to_device = to_place.device;
  const std::size_t bytes = std::min(from.bytes, to.bytes);
  const bool are_on_host = from_device == gpu::host && to_device == gpu::host;
  const bool are_readable = from_place.is_readable && to_place.is_readable;
  const bool is_one =
      from_device == gpu::host || to_device == gpu::host || to_device == from_device;
  if (source.contiguous && target.contiguous && is_one && (are_readable || !are_on_host)) {
    return copy_bytes(runtime, to.data, to_place, from.data, from_place, bytes, under_way);
  }
  if (are_on_host) return copy_on_host(runtime, from, from_place, to, to_place);
  const int device = from_device == gpu::host ? to_device : from_device;
  const memory::Buffer packed = runtime.devices.take_pinned(device, from.bytes);
  if (!packed) return short_of_memory(runtime, device);
  if (from_device != gpu::host) {
    const Status status = pack_from_device(runtime, from_device, from.data, from.count, source,
                                           packed.data(), from.bytes);
    if (!status.is_ok()) return status;
  } else if (!source.pack(from.data, from.count, from_place.is_readable, packed.data(),
                          from.bytes)) {
    return Status::copy_failed;
  }
  return to_device != gpu::host
             ? unpack_to_device(runtime, to_device, packed.data(), bytes, to.data, to.count, target)
             : target.unpack(packed.data(), bytes, to.data, to.count, to_place.is_readable);
}

}  // namespace mpress::engine
