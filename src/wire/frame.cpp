#include "wire/frame.hpp"

#include <cmath>
#include <cstring>

#include "codec/checksum.hpp"
#include "config/version.hpp"

namespace mpress::wire {
namespace {

// Byte offsets in the header; all fields are little-endian.
constexpr std::size_t nonce_at = 0;
constexpr std::size_t version_at = 16;
constexpr std::size_t codec_at = 18;
constexpr std::size_t type_at = 19;
constexpr std::size_t mode_at = 20;
constexpr std::size_t dim_at = 21;
constexpr std::size_t flags_at = 22;
constexpr std::size_t count_at = 24;
constexpr std::size_t payload_at = 32;
constexpr std::size_t value_at = 40;
constexpr std::size_t chunk_bytes_at = 48;
constexpr std::size_t route_at = 52;
constexpr std::size_t checksum_at = 60;

constexpr std::uint8_t elements_flag = 1;

template <typename T>
void put(std::uint8_t* header, std::size_t at, T value) {
  std::memcpy(header + at, &value, sizeof value);
}

template <typename T>
T get(const std::uint8_t* header, std::size_t at) {
  T value;
  std::memcpy(&value, header + at, sizeof value);
  return value;
}

/// FNV-1a with a seed: spreads a job's text over the nonce. Not a secret, only unlikely to occur
/// at the start of a program's own data.
std::uint64_t hash(const std::string& text, std::uint64_t seed) {
  std::uint64_t h = 0xcbf29ce484222325u ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

/// Could this be the header of a frame of `bytes` bytes or more?
bool plausible(const Header& header, std::size_t bytes) {
  if (header.count > (UINT64_MAX >> 4)) return false;
  if (header.chunk_bytes > max_chunk_bytes || header.chunk_bytes % sizeof(double) != 0)
    return false;
  if (header.chunk_bytes > 0 && header.payload_bytes > 0) return false;
  if (header.payload_bytes > header.raw_bytes()) return false;
  const std::size_t announced = frame_bytes(header.payload_bytes);
  return announced >= bytes && header.raw_bytes() >= announced;
}

}  // namespace

Nonce make_nonce(const std::string& job) {
  const std::string text = job + "/" + std::to_string(frame_version);
  Nonce nonce;
  put(nonce.data(), 0, hash(text, 0));
  put(nonce.data(), 8, hash(text, 0x9E3779B97F4A7C15u));
  return nonce;
}

void write_header(const Header& header, const Nonce& nonce, void* out) {
  std::uint8_t bytes[header_bytes] = {};
  std::memcpy(bytes + nonce_at, nonce.data(), nonce.size());
  put(bytes, version_at, static_cast<std::uint16_t>(frame_version));
  put(bytes, codec_at, static_cast<std::uint8_t>(header.spec.codec));
  put(bytes, type_at, static_cast<std::uint8_t>(header.type));
  put(bytes, mode_at, static_cast<std::uint8_t>(header.spec.mode));
  put(bytes, dim_at, header.spec.dim);
  put(bytes, flags_at, header.may_be_elements ? elements_flag : std::uint8_t{0});
  put(bytes, count_at, header.count);
  put(bytes, payload_at, header.payload_bytes);
  put(bytes, value_at, header.spec.value);
  put(bytes, chunk_bytes_at, header.chunk_bytes);
  put(bytes, route_at, header.route);
  put(bytes, checksum_at, checksum(bytes, checksum_at));
  std::memcpy(out, bytes, header_bytes);
}

std::size_t close_frame(const Header& header, const Nonce& nonce, std::byte* frame) {
  const std::size_t bytes = frame_bytes(header.payload_bytes);
  const std::size_t used = header_bytes + header.payload_bytes;
  write_header(header, nonce, frame);
  std::memset(frame + used, 0, bytes - used);
  return bytes;
}

bool announces_chunks(const void* message, const Nonce& nonce) {
  const auto* in = static_cast<const std::uint8_t*>(message);
  return std::memcmp(message, nonce.data(), nonce.size()) == 0 &&
         get<std::uint32_t>(in, checksum_at) == checksum(in, checksum_at) &&
         get<std::uint32_t>(in, chunk_bytes_at) > 0;
}

Parse read_header(const void* message, std::size_t bytes, const Nonce& nonce, Header& header) {
  if (!is_frame_size(bytes)) return Parse::raw;
  if (std::memcmp(message, nonce.data(), nonce.size()) != 0) return Parse::raw;
  const auto* in = static_cast<const std::uint8_t*>(message);
  if (get<std::uint32_t>(in, checksum_at) != checksum(in, checksum_at)) return Parse::corrupt;
  if (get<std::uint16_t>(in, version_at) != frame_version) return Parse::corrupt;
  const auto codec = get<std::uint8_t>(in, codec_at);
  const auto type = get<std::uint8_t>(in, type_at);
  const auto mode = get<std::uint8_t>(in, mode_at);
  if (codec > 3 || !is_element_type(type) || mode > 1) return Parse::corrupt;
  Header parsed;
  parsed.spec.codec = static_cast<Codec>(codec);
  parsed.spec.mode = static_cast<Mode>(mode);
  parsed.spec.dim = get<std::uint8_t>(in, dim_at);
  parsed.spec.value = get<double>(in, value_at);
  parsed.spec.bound = parsed.spec.codec == Codec::szp ? Bound::abs : Bound::none;
  parsed.type = static_cast<ElementType>(type);
  parsed.count = get<std::uint64_t>(in, count_at);
  parsed.payload_bytes = get<std::uint64_t>(in, payload_at);
  parsed.chunk_bytes = get<std::uint32_t>(in, chunk_bytes_at);
  parsed.route = get<std::uint64_t>(in, route_at);
  const auto flags = get<std::uint8_t>(in, flags_at);
  parsed.may_be_elements = flags == elements_flag;
  if (flags > elements_flag || (parsed.may_be_elements && parsed.chunk_bytes == 0)) {
    return Parse::corrupt;
  }
  // Only chunks hold elements as they are, or come by a link.
  if (parsed.route != 0 && parsed.chunk_bytes == 0) return Parse::corrupt;
  if (parsed.spec.codec == Codec::none && parsed.chunk_bytes == 0) return Parse::corrupt;
  if (!plausible(parsed, bytes)) return Parse::corrupt;
  std::string ignored;
  if (!validate_spec(parsed.spec, parsed.type, ignored)) return Parse::corrupt;
  if (frame_bytes(parsed.payload_bytes) > bytes) return Parse::cut;
  header = parsed;
  return Parse::frame;
}

}  // namespace mpress::wire
