// Reads hostile frame headers and codec specs. What is accepted must survive being written again.
#include <string>

#include "codec/spec.hpp"
#include "input.hpp"
#include "wire/frame.hpp"

namespace mpress::fuzz {
namespace {

void read_frame(Input in) {
  static const wire::Nonce nonce = wire::make_nonce("fuzz");
  wire::Header header;
  const std::vector<std::uint8_t> message(in.data(), in.data() + in.size());
  (void)wire::read_header(message.data(), message.size(), nonce, header);

  // A header of ours with the input's edits.
  wire::Header ours;
  ours.type = choose_type(in);
  ours.spec = choose_spec(static_cast<Codec>(1 + in.take<std::uint8_t>() % 3), ours.type, in);
  if (ours.spec.bound == Bound::rel) ours.spec.bound = Bound::abs;
  ours.count = in.take<std::uint64_t>();
  ours.payload_bytes = in.take<std::uint64_t>();
  std::vector<std::uint8_t> bytes(wire::header_bytes);
  wire::write_header(ours, nonce, bytes.data());
  while (in.size() >= 2) {
    bytes[in.take<std::uint8_t>() % bytes.size()] ^= in.take<std::uint8_t>();
  }
  const std::size_t size = wire::frame_bytes(1000, ours.type);
  bytes.resize(size);
  (void)wire::read_header(bytes.data(), size, nonce, header);
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
  if (data[0] % 2) {
    mpress::fuzz::read_frame({data + 1, size - 1});
  } else {
    mpress::fuzz::read_spec(std::string(data + 1, data + size));
  }
  return 0;
}
