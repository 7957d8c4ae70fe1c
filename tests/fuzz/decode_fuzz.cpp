// Decodes hostile payloads of the codec FUZZ_CODEC: the input itself, or a real payload with the
// input's edits, mostly with the checksum made right, which would otherwise keep the fuzzer out
// of everything behind it. All instruction sets must agree on what they find.
#include <cmath>

#include "codec/checksum.hpp"
#include "codec/szp/format.hpp"
#include "input.hpp"

namespace mpress::fuzz {
namespace {

constexpr std::size_t max_count = 5000;  // a few units of every codec

/// Puts the right checksum where docs/codecs.md says.
void seal(std::vector<std::uint8_t>& payload) {
  if (payload.size() < 8) return;
  std::uint32_t sum = 0;
  std::size_t at = 4;
  switch (Codec::FUZZ_CODEC) {
    case Codec::mpc:
      std::memset(&payload[at], 0, 4);
      sum = checksum(payload.data(), payload.size());
      break;
    case Codec::szp:
      sum = checksum(payload.data(), 4) + checksum(payload.data() + 8, payload.size() - 8, 2);
      break;
    default: at = payload.size() - 4; sum = checksum(payload.data(), at);
  }
  std::memcpy(&payload[at], &sum, 4);
}

/// Elements smooth here and rough there, as the seed says.
Bytes some_elements(ElementType type, std::size_t count, unsigned seed) {
  Bytes bytes(count * element_size(type), 0);
  unsigned state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const bool empty = (seed & 1) != 0 && i / 256 % 3 == 1;
    const double rough = (seed & 2) != 0 && i / 512 % 2 == 1 ? state / 4294967296.0 : 0;
    double value = empty ? 0 : std::sin(static_cast<double>(i) * 0.01 + seed) + rough;
    if ((seed & 4) != 0 && state % 101 == 0) value = NAN;
    if ((seed & 8) != 0 && i / 128 % 5 == 2) value = 1e20;
    if ((seed & 16) != 0) value = std::floor(value * 4);
    const auto narrow = static_cast<float>(value);
    if (type == ElementType::f32) {
      std::memcpy(bytes.data() + i * 4, &narrow, 4);
    } else {
      std::memcpy(bytes.data() + i * 8, &value, 8);
    }
  }
  return bytes;
}

struct Payload {
  std::vector<std::uint8_t> bytes;
  bool damaged = false;  ///< differs from a real one in one word, or ends early
};

/// A real payload; then each 5 bytes of the input are an edit: where, how, and what.
Payload edited_payload(const Spec& spec, ElementType type, std::size_t count, Input& in) {
  const Bytes elements = some_elements(type, count, in.take<std::uint8_t>());
  std::vector<std::uint8_t> payload(codec::max_payload_bytes(spec, type, count));
  payload.resize(codec::encode(spec, type, elements.data(), count, payload.data()));
  const bool one_edit = in.size() >= 5 && in.size() < 10;
  const std::vector<std::uint8_t> real = payload;
  while (in.size() >= 5 && !payload.empty()) {
    const std::size_t at = in.take<std::uint16_t>() % payload.size();
    const auto how = in.take<std::uint8_t>();
    const auto what = in.take<std::uint16_t>();
    if (how % 8 == 7) {
      payload.resize(what % (payload.size() + 1));
    } else if (how % 8 == 6 && payload.size() - at >= 2) {
      std::memcpy(&payload[at], &what, 2);
    } else if (how % 2 == 1) {
      payload[at] = static_cast<std::uint8_t>(what);
    } else {
      payload[at] ^= static_cast<std::uint8_t>(1u << what % 8);
    }
  }
  // An edit of two bytes may touch two words; of those a checksum cannot tell every pair.
  std::size_t first = 0;
  while (first < payload.size() && first < real.size() && payload[first] == real[first]) ++first;
  std::size_t last = payload.size();
  while (last > first && last <= real.size() && payload[last - 1] == real[last - 1]) --last;
  const bool one_word = first < last && first / 4 == (last - 1) / 4;
  const bool damaged = one_edit && (payload.size() < real.size() || one_word);
  return {std::move(payload), damaged};
}

codec::Status decode(const Spec& spec, ElementType type, const std::vector<std::uint8_t>& bytes,
                     std::size_t count, std::size_t shift) {
  Bytes payload(bytes.size(), shift % 8);
  std::copy(bytes.begin(), bytes.end(), payload.data());
  Bytes first(0, 0);
  codec::Status status = codec::Status::ok;
  bool any = false;
  on_every_isa([&] {
    Bytes elements(count * element_size(type), shift / 8);
    const codec::Status found =
        codec::decode(spec, type, payload.data(), payload.size(), elements.data(), count);
    if (any) {
      require(found == status);
      require(found != codec::Status::ok || elements == first);
    } else {
      any = true;
      status = found;
      first = std::move(elements);
    }
  });
  return status;
}

/// Adds the payload to itself, twice: what comes of it decodes like any other.
void add(const Spec& spec, ElementType type, const std::vector<std::uint8_t>& bytes,
         std::size_t count, std::size_t shift) {
  Bytes payload(bytes.size(), shift % 8);
  std::copy(bytes.begin(), bytes.end(), payload.data());
  std::vector<std::uint8_t> first;
  codec::Status status = codec::Status::ok;
  bool any = false;
  on_every_isa([&] {
    Bytes out(codec::szp::max_bytes(type, count), shift / 8);
    std::size_t size;
    const codec::Summand one{payload.data(), payload.size()};
    const codec::Summand three[] = {one, one, one};
    const codec::Status found = codec::szp::add(type, three, count, out.data(), size);
    std::vector<std::uint8_t> sum(out.data(), out.data() + size);
    require(!any || (found == status && sum == first));
    any = true;
    status = found;
    first = std::move(sum);
  });
  if (status == codec::Status::ok)
    require(decode(spec, type, first, count, shift) == codec::Status::ok);
}

void run(Input in) {
  const ElementType type = choose_type(in);
  const Spec spec = choose_spec(Codec::FUZZ_CODEC, type, in);
  const std::size_t count = in.take<std::uint16_t>() % (max_count + 1);
  const std::size_t shift = in.take<std::uint8_t>() % 64;
  const auto how = in.take<std::uint8_t>();
  Payload payload;
  if (how % 4 != 0) {
    payload = edited_payload(spec, type, count, in);
  } else {
    payload.bytes.assign(in.data(), in.data() + in.size());
  }
  if (how / 4 % 8 != 0) {
    seal(payload.bytes);
    (void)decode(spec, type, payload.bytes, count, shift);
    if (Codec::FUZZ_CODEC == Codec::szp) add(spec, type, payload.bytes, count, shift);
  } else {
    const codec::Status status = decode(spec, type, payload.bytes, count, shift);
    require(!payload.damaged || status != codec::Status::ok);
  }
}

}  // namespace
}  // namespace mpress::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mpress::fuzz::run({data, size});
  return 0;
}
