#include "coll/neighbourhoods/frames.hpp"

#include <array>

#include "coll/blocks/envelope.hpp"
#include "core/staging.hpp"
#include "message/block.hpp"
#include "message/block_decode.hpp"
#include "message/messaging.hpp"
#include "pipeline/received_block.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

void Frames::restart() {
  encoded_.clear();
  codec_ = Codec::none;
  bound_ = 0;
  status_ = Status::ok;
}

std::span<const std::byte> Frames::frame(std::uint32_t number, const BlockData& data, int to) {
  const auto [at, is_new] = encoded_.try_emplace(number);
  return is_new ? encode(at->second, data, to) : at->second.frame;
}

std::span<const std::byte> Frames::encode(Encoded& encoded, const BlockData& data, int to) {
  // One of several payloads has no frame: a block of many chunks loses nothing by going as it is.
  if (messaging_.config.chunk > 0 && data.bytes >= 2 * messaging_.config.chunk) return {};
  const SendCall call{called_, call_.family, true, std::nullopt, coding_};
  const Message message =
      block_message(call, data, team_.settings(), locate(messaging_, data.data, *data.layout));
  BlockChoice choice = encode_block(messaging_, message, std::array{team_.world_rank(to)}, false);
  if (!choice.status.is_ok()) status_ = choice.status;
  if (!choice.opaque) return {};
  encoded.opaque = std::move(choice.opaque);
  OpaqueBlock& opaque = *encoded.opaque;
  await_device(opaque.device(), [&] { return opaque.advance(); });
  if (!opaque.status().is_ok()) status_ = opaque.status();
  if (!opaque.is_whole() || opaque.cut().chunks() > 1) return {};
  std::size_t bytes = 0;
  const std::byte* const frame = opaque.frame(bytes);
  if (!frame || bytes >= data.bytes) return {};
  encoded.frame = {frame, bytes};
  codec_ = opaque.cut().spec.codec;
  bound_ = Outcome::looser(bound_, opaque.loss().announced_bound());
  return encoded.frame;
}

Status Frames::decode(std::span<const std::byte> frame, int from, const BlockData& data) {
  wire::Header header;
  const auto parsed = wire::read_header(frame.data(), frame.size(), messaging_.nonce, header);
  if (parsed != wire::Parse::frame || header.raw_bytes() != data.bytes) return Status::corrupt;
  ReceivedBlock opaque(messaging_);
  const Chunking cut = Chunking::of(header, team_.world_rank(from));
  opaque.begin(cut, gpu::host, true);
  opaque.take(0, {frame.data() + wire::header_bytes, header.payload_bytes}, false);
  if (opaque.settled(); !opaque.is_whole()) return Status::no_memory;
  BlockDecode decode(messaging_, opaque, data.data, data.count, data.layout);
  await_device(gpu::host, [&] { return decode.advance(); });
  const Loss loss = Loss::of(header.spec, header.spec, gpu::host, 0);
  bound_ = Outcome::looser(bound_, loss.announced_bound());
  return decode.status();
}

}  // namespace mpress::engine
