// Reads hostile frame headers and codec specs. What is accepted must be fit for what the engine
// does with it, and survive being written again.
#include <string>

#include "codec/checksum.hpp"
#include "codec/spec.hpp"
#include "input.hpp"
#include "wire/frame.hpp"

namespace mpress::fuzz {
namespace {

constexpr std::size_t max_message = 4096;
constexpr std::size_t max_raw_bytes = std::size_t{1} << 20;  // the receiver's buffer

const wire::Nonce& nonce() {
  static const wire::Nonce nonce = wire::make_nonce("fuzz");
  return nonce;
}

/// Receives a message as the engine does.
void receive(const std::vector<std::uint8_t>& bytes) {
  Bytes message(bytes.size(), 0);
  std::copy(bytes.begin(), bytes.end(), message.data());
  wire::Header header;
  if (wire::read_header(message.data(), message.size(), nonce(), header) != wire::Parse::frame) {
    return;
  }
  require(wire::is_frame_size(message.size()));
  require(wire::frame_bytes(header.payload_bytes) == message.size());
  require(header.raw_bytes() >= message.size());
  require(header.spec.bound != Bound::rel && header.spec.codec != Codec::automatic);
  require(!to_string(header.spec).empty());
  std::string error;
  require(validate_spec(header.spec, header.type, error));

  std::vector<std::uint8_t> again(message.size());
  wire::write_header(header, nonce(), again.data());
  wire::Header reread;
  require(wire::read_header(again.data(), again.size(), nonce(), reread) == wire::Parse::frame);
  require(reread.count == header.count && reread.type == header.type);
  require(reread.chunk_bytes == header.chunk_bytes && reread.route == header.route);
  require(reread.may_be_elements == header.may_be_elements);
  require(header.route == 0 || header.chunk_bytes > 0);
  if (header.chunk_bytes > 0) {
    const std::uint64_t chunks = header.chunks();
    require(chunks > 0 && header.chunk_raw_bytes(0) > 0 && header.chunk_raw_bytes(chunks - 1) > 0);
  }

  if (header.raw_bytes() > max_raw_bytes) return;
  Bytes elements(header.raw_bytes(), 0);
  (void)codec::decode(header.spec, header.type, message.data() + wire::header_bytes,
                      header.payload_bytes, elements.data(), header.count);
}

/// A header of ours with the input's edits, before a payload of any kind.
void edited_frame(Input in) {
  wire::Header ours;
  ours.type = choose_type(in);
  ours.spec = choose_spec(static_cast<Codec>(1 + in.take<std::uint8_t>() % 3), ours.type, in);
  if (ours.spec.bound == Bound::rel) ours.spec.bound = Bound::abs;
  ours.count = in.take<std::uint64_t>();
  ours.payload_bytes = in.take<std::uint16_t>() % max_message;
  const unsigned seal = in.take<std::uint8_t>();
  const bool sealed = seal % 4 != 0;
  const unsigned edits = in.take<std::uint8_t>() % 8;
  if (seal / 4 % 4 == 3) {  // in chunks, by way of MPI or of a GPU
    ours.payload_bytes = 0;
    ours.chunk_bytes = in.take<std::uint32_t>() % wire::max_chunk_bytes / 8 * 8;
    ours.route = std::uint64_t{in.take<std::uint32_t>()} << 32;
  }
  std::vector<std::uint8_t> bytes(wire::frame_bytes(ours.payload_bytes));
  wire::write_header(ours, nonce(), bytes.data());
  for (unsigned i = 0; i < edits; ++i) {
    const std::size_t at = in.take<std::uint8_t>() % wire::header_bytes;
    bytes[at] ^= in.take<std::uint8_t>();
  }
  if (sealed) {
    const std::uint32_t sum = checksum(bytes.data(), wire::header_bytes - 4);
    std::memcpy(&bytes[wire::header_bytes - 4], &sum, 4);
  }
  const std::size_t rest = std::min(in.size(), bytes.size() - wire::header_bytes);
  if (rest > 0) std::memcpy(&bytes[wire::header_bytes], in.data(), rest);
  receive(bytes);
}

void read_spec(const std::string& text) {
  Spec spec, again;
  std::string error;
  if (!parse_spec(text, spec, error)) {
    require(!error.empty());
    return;
  }
  require(parse_spec(to_string(spec), again, error));
  require(spec == again);
}

}  // namespace
}  // namespace mpress::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  switch (data[0] % 4) {
    case 0: mpress::fuzz::read_spec(std::string(data + 1, data + size)); break;
    case 1: mpress::fuzz::receive({data + 1, data + size}); break;
    default: mpress::fuzz::edited_frame({data + 1, size - 1});
  }
  return 0;
}
