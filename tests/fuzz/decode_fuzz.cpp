// Decodes hostile payloads of the codec FUZZ_CODEC. Two kinds take turns: the input itself, and a
// real payload with the input's edits. Both are decoded as they are and again with the checksum
// made right, since otherwise it would keep the fuzzer out of everything behind it.
#include <cmath>

#include "codec/checksum.hpp"
#include "input.hpp"

namespace mpress::fuzz {
namespace {

constexpr std::size_t max_count = 12000;  // a few units of every codec

/// Puts the right checksum where docs/codecs.md says.
void seal(std::vector<std::uint8_t>& payload) {
  std::uint32_t sum = 0;
  if (payload.size() < 8) return;
  std::size_t at = 4;
  switch (Codec::FUZZ_CODEC) {
    case Codec::mpc:
      std::memset(&payload[at], 0, 4);
      sum = checksum(payload.data(), payload.size());
      break;
    case Codec::szp:
      sum = checksum(payload.data(), 4) + checksum(&payload[8], payload.size() - 8, 2);
      break;
    default:
      at = payload.size() - 4;
      sum = checksum(payload.data(), at);
  }
  std::memcpy(&payload[at], &sum, 4);
}

/// Elements smooth here and rough there, as the seed says.
std::vector<std::uint8_t> some_elements(ElementType type, std::size_t count, unsigned seed) {
  std::vector<std::uint8_t> bytes(count * element_size(type));
  unsigned state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const bool empty = seed & 1 && i / 256 % 3 == 1;
    const double rough = seed & 2 && i / 512 % 2 ? state / 4294967296.0 : 0;
    double value = empty ? 0 : std::sin(static_cast<double>(i) * 0.01 + seed) + rough;
    if (seed & 4 && state % 101 == 0) value = NAN;
    if (seed & 8 && state % 103 == 0) value = INFINITY;
    const auto narrow = static_cast<float>(value);
    if (type == ElementType::f32) {
      std::memcpy(&bytes[i * 4], &narrow, 4);
    } else {
      std::memcpy(&bytes[i * 8], &value, 8);
    }
  }
  return bytes;
}

/// A real payload; then each 5 bytes of the input are an edit: where, how, and what.
std::vector<std::uint8_t> edited_payload(const Spec& spec, ElementType type, std::size_t count,
                                         Input& in) {
  const auto elements = some_elements(type, count, in.take<std::uint8_t>());
  std::vector<std::uint8_t> payload(codec::max_payload_bytes(spec, type, count));
  payload.resize(codec::encode(spec, type, elements.data(), count, payload.data()));
  while (in.size() >= 5 && !payload.empty()) {
    const std::size_t at = in.take<std::uint16_t>() % payload.size();
    const auto how = in.take<std::uint8_t>();
    const auto what = in.take<std::uint16_t>();
    if (how % 8 == 7) {
      payload.resize(what % (payload.size() + 1));
    } else if (how % 2) {
      payload[at] = static_cast<std::uint8_t>(what);
    } else {
      payload[at] ^= static_cast<std::uint8_t>(1u << what % 8);
    }
  }
  return payload;
}

/// Exact heap blocks, so that the address sanitizer sees one byte too many on either side.
void decode(const Spec& spec, ElementType type, const std::vector<std::uint8_t>& payload,
            std::size_t count) {
  const std::vector<std::uint8_t> exact(payload);
  std::vector<std::uint8_t> elements(count * element_size(type));
  (void)codec::decode(spec, type, exact.data(), exact.size(), elements.data(), count);
}

void run(Input in) {
  const ElementType type = choose_type(in);
  Spec spec = choose_spec(Codec::FUZZ_CODEC, type, in);
  const std::size_t count = in.take<std::uint16_t>() % (max_count + 1);
  const bool edited = in.take<std::uint8_t>() % 4 != 0;
  std::vector<std::uint8_t> payload = edited
                                          ? edited_payload(spec, type, count, in)
                                          : std::vector<std::uint8_t>(in.data(), in.data() + in.size());
  decode(spec, type, payload, count);
  seal(payload);
  decode(spec, type, payload, count);
}

}  // namespace
}  // namespace mpress::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mpress::fuzz::run({data, size});
  return 0;
}
