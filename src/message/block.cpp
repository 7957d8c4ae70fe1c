// The codec of a block that several ranks get, if any: decided once, by the rank that has it first.

#include <algorithm>

#include "codec/float_environment.hpp"
#include "message/block.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "pipeline/own_block.hpp"
#include "policy/chunks.hpp"

namespace mpress::engine {
namespace {

/// Is the first chunk, which is there, so much shorter than its elements that it pays for a header?
bool is_shorter(const OpaqueBlock& opaque) {
  const std::size_t bytes = opaque.chunk(0).bytes;
  const Chunking& cut = opaque.cut();
  if (opaque.chunk(0).is_elements) return false;
  return cut.chunks() == 1 ? wire::frame_bytes(bytes) <= cut.bytes()
                           : bytes + wire::min_frame_bytes <= cut.chunk_bytes;
}

}  // namespace

std::size_t Coding::chunk_of(std::size_t bytes) const {
  if (chunk_bytes == 0 || bytes < 2 * chunk_bytes) return bytes;
  if (!is_for_devices) return chunk_bytes;
  const auto windowed = [&] {
    return policy::windowed_chunk(bytes, chunk_bytes, share_in_windows);
  };
  const std::size_t chunk =
      share_in_windows != 0 ? compute(windowed) : policy::linked_chunk(bytes, chunk_bytes);
  return std::min({chunk, bytes, wire::max_chunk_bytes});
}

std::uint32_t next_number(Messaging& messaging) {
  return static_cast<std::uint32_t>(
      messaging.links.channel.tag_of(messaging.links.channel.next_operation()));
}

link::Kind link_to(const Messaging& messaging, int device, std::size_t bytes,
                   std::span<const int> readers) {
  if (device == gpu::host || bytes < messaging.links.least_bytes_between_devices)
    return link::Kind::channel;
  return messaging.links.first([&](const link::Link& link) {
    return std::ranges::all_of(readers, [&](int rank) { return link.reaches(rank); });
  });
}

OpaqueBlock::StagingSlots find_staging(Messaging& messaging, const Chunking& cut, int device,
                                       link::Kind kind, std::span<const int> readers) {
  if (kind == link::Kind::channel) return {};
  OpaqueBlock::StagingSlots staging{&messaging.links.of(kind)};
  const link::Reservation wanted =
      reservation(cut, readers, device, cut.room(), messaging.links.channel.next_operation());
  if (!staging.link->reserve(wanted, staging.transfer)) return {};
  staging.link->lay_out(staging.transfer);
  return staging;
}

BlockChoice encode_block(Messaging& messaging, Message message, std::span<const int> readers,
                         bool at_once) {
  using trace::Reason;
  const SendCall& call = message.call;
  Choice choice;
  // It is encoded once, so it is worth it where it is for one of them.
  for (std::size_t i = 0; i < readers.size(); ++i) {
    message.peer = readers[i];
    const Choice one = choose(messaging, message, false);
    if (i == 0 || one.spec.codec != Codec::none) choice = one;
    if (one.spec.codec != Codec::none) break;
  }
  if (choice.spec.codec == Codec::none) return {nullptr, choice.reason};
  if (const Status status = check_spec(messaging, message, choice.spec); !status.is_ok()) {
    return {nullptr, Reason::none, status};
  }
  std::optional<Elements> elements;
  if (const Status status = gather_elements(messaging, message, elements); !status.is_ok()) {
    return {nullptr, Reason::none, status};
  }
  if (!elements) return {nullptr, Reason::memory};
  const link::Kind kind = link_to(messaging, message.device, message.bytes, readers);
  const Region region = elements->region;
  const bool is_summed = call.coding && call.coding->is_summed;
  const std::size_t chunk_bytes = is_summed ? call.coding->chunk_of(message.bytes)
                                            : block_chunk_bytes(messaging, message, kind, true);
  const Chunking cut{choice.spec, region.type,  region.count,
                     chunk_bytes, message.peer, next_number(messaging)};
  auto opaque = std::make_shared<OwnBlock>(messaging);
  // In windows copies wait for memory, which kernels should not.
  const bool is_in_windows = call.coding && call.coding->share_in_windows != 0 && cut.chunks() > 1;
  const OpaqueBlock::StagingSlots staging =
      at_once && !is_in_windows ? find_staging(messaging, cut, region.device, kind, readers)
                                : OpaqueBlock::StagingSlots{};
  double measured = 0;
  if (measures_error(messaging, choice.spec)) {
    const Status status = measure_error(messaging, choice.spec, region, measured);
    if (!status.is_ok()) return {nullptr, Reason::none, status};
  }
  if (!opaque->encode(cut, region, std::move(elements->packed), staging, call.batch)) {
    return {nullptr, Reason::memory};
  }
  opaque->set_loss(Loss::of(choice.spec, opaque->cut().spec, region.device, measured));
  const policy::Subject subject = subject_of(messaging, message, choice.spec.codec);
  opaque->when_encoded([&messaging, subject](std::size_t encoded, std::uint64_t took_ns) {
    messaging.policy.encoded(subject, encoded + wire::min_frame_bytes, took_ns);
  });
  if (kind != link::Kind::channel) {
    tell_error(call, measured);
    return {std::move(opaque)};
  }
  // What a device refuses is an error of the call while nothing is announced.
  await_device(region.device, [&] { return opaque->advance() || opaque->ready() > 0; });
  if (opaque->ready() == 0) return {nullptr, Reason::none, opaque->status()};
  if (!is_shorter(*opaque)) return {nullptr, Reason::incompressible};
  tell_error(call, measured);
  return {std::move(opaque)};
}

/// The peer link offers what is raw to each reader where it lies.
std::shared_ptr<OpaqueBlock> hold_block(Messaging& messaging, Message message,
                                        std::span<const int> readers) {
  if (readers.size() < 2 || !message.layout.contiguous || message.device == gpu::host) {
    return nullptr;
  }
  for (const int reader : readers) {
    message.peer = reader;
    if (messaging.links.nearest(reader) == link::Kind::peer ||
        !may_be_announced(messaging, message) || !takes_raw(messaging, message)) {
      return nullptr;
    }
  }
  const link::Kind kind = link_to(messaging, message.device, message.bytes, readers);
  if (kind == link::Kind::channel && (messaging.gpu_aware || !is_cut(messaging, message)))
    return nullptr;
  const ElementType element = message.layout.element.value_or(ElementType::f32);
  const Region region{element, static_cast<const std::byte*>(message.buffer),
                      message.bytes / element_size(element), message.device};
  auto opaque = std::make_shared<OwnBlock>(messaging);
  opaque->hold(
      {no_codec(), element, region.count, block_chunk_bytes(messaging, message, kind, false),
       message.peer, next_number(messaging)},
      region);
  return opaque;
}

}  // namespace mpress::engine
