#include "mpi/collectives/neighbours/frames.hpp"

#include <array>

#include "coll/blocks/envelope.hpp"
#include "core/staging.hpp"
#include "message/block.hpp"
#include "message/block_decode.hpp"
#include "mpi/job/job.hpp"
#include "pipeline/received_block.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

void Frames::restart() {
  encoded_.clear();
  codec_ = Codec::none;
  bound_ = 0;
  code_ = MPI_SUCCESS;
}

std::span<const std::byte> Frames::frame(std::uint32_t number, const Part& part, int to) {
  const auto [at, is_new] = encoded_.try_emplace(number);
  return is_new ? encode(at->second, part, to) : at->second.frame;
}

std::span<const std::byte> Frames::encode(Encoded& encoded, const Part& part, int to) {
  // One of several payloads has no frame: a block of many chunks loses nothing by going as it is.
  if (job_.config.chunk > 0 && part.bytes >= 2 * job_.config.chunk) return {};
  const SendCall call{called_, call_.family, true, std::nullopt, coding_};
  const BlockData place = data_of(part);
  if (!place.layout) return {};
  const Message message =
      block_message(call, place, team_.settings(), locate(job_, place.data, *place.layout));
  BlockChoice choice = encode_block(job_, message, std::array{team_.world_rank(to)}, false);
  if (!choice.status.is_ok()) code_ = job_.code_of(choice.status);
  if (!choice.opaque) return {};
  encoded.opaque = std::move(choice.opaque);
  OpaqueBlock& opaque = *encoded.opaque;
  await_device(opaque.device(), [&] { return opaque.advance(); });
  if (!opaque.status().is_ok()) code_ = job_.code_of(opaque.status());
  if (!opaque.is_whole() || opaque.cut().chunks() > 1) return {};
  std::size_t bytes = 0;
  const std::byte* const data = opaque.frame(bytes);
  if (!data || bytes >= part.bytes) return {};
  encoded.frame = {data, bytes};
  codec_ = opaque.cut().spec.codec;
  bound_ = Outcome::looser(bound_, opaque.loss().announced_bound());
  return encoded.frame;
}

int Frames::decode(std::span<const std::byte> frame, int from, const Part& part) {
  wire::Header header;
  const auto parsed = wire::read_header(frame.data(), frame.size(), job_.nonce, header);
  if (parsed != wire::Parse::frame || header.raw_bytes() != part.bytes) return job_.corrupt_code;
  ReceivedBlock opaque(job_);
  const Chunking cut = Chunking::of(header, team_.world_rank(from));
  opaque.begin(cut, gpu::host, true);
  opaque.take(0, {frame.data() + wire::header_bytes, header.payload_bytes}, false);
  if (opaque.settled(); !opaque.is_whole()) return MPI_ERR_NO_MEM;
  BlockDecode decode(job_, opaque, part.data, part.count, mpi::type_info(part.type));
  await_device(gpu::host, [&] { return decode.advance(); });
  const Loss loss = Loss::of(header.spec, header.spec, gpu::host, 0);
  bound_ = Outcome::looser(bound_, loss.announced_bound());
  return job_.code_of(decode.status());
}

}  // namespace mpress::engine
