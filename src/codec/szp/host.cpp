// szp on the host: the payload, the portable unit codec, and the choice among instruction sets.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "codec/float_environment.hpp"
#include "codec/isa.hpp"
#include "codec/scratch.hpp"

#define MPRESS_ISA portable
#include "codec/szp/portable.hpp"
// The unit codec calls the primitives above.
#include "codec/szp/decode.hpp"
#include "codec/szp/encode.hpp"
// The sum of units calls both.
#include "codec/szp/add.hpp"

namespace mpress::codec::szp {
namespace {

template <class T>
struct UnitCodec {
  EncodedUnit (*encode)(const Quantizer<T>&, Mode, const unsigned char*, std::size_t,
                        unsigned char*, std::size_t, void*);
  bool (*decode)(T, const unsigned char*, std::size_t, unsigned char*, std::size_t);
  Status (*add)(const Quantizer<T>&, Mode, std::span<const CodedUnit>, std::size_t, unsigned char*,
                std::size_t, unsigned char*, EncodedUnit&, void*);
};

template <class T>
UnitCodec<T> unit_codec() {
#if defined(__x86_64__) && defined(MPRESS_X86_KERNELS)
  if (host_isa() == Isa::avx512)
    return {avx512::encode_unit, avx512::decode_unit, avx512::add_unit};
  if (host_isa() == Isa::avx2) return {avx2::encode_unit, avx2::decode_unit, avx2::add_unit};
#endif
  return {portable::encode_unit, portable::decode_unit, portable::add_unit};
}

/// Sum over every word of the payload but the checksum itself.
std::uint32_t payload_checksum(const unsigned char* payload, std::size_t bytes) {
  return checksum(payload, 4, 0) + checksum(payload + 8, bytes - 8, 2);
}

std::size_t finish(Header header, unsigned char* out, std::size_t bytes) {
  std::memcpy(out, &header, sizeof header);
  header.checksum = payload_checksum(out, bytes);
  std::memcpy(out, &header, sizeof header);
  return bytes;
}

/// A unit is read in one go, too short for the hardware to run ahead: the next one is asked for
/// while this one is encoded.
void prefetch(const unsigned char* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(data + at, 0, 3);
}

/// Writes directory and units behind the header. Returns the payload's size, or 0 where it
/// would not be smaller than the elements.
template <class T>
std::size_t encode_units(const Quantizer<T>& z, Mode mode, const unsigned char* in,
                         std::size_t count, unsigned char* out) {
  const UnitCodec<T> codec = unit_codec<T>();
  const std::size_t whole = unit_elements(Traits<T>::type);
  const std::size_t units = unit_count(Traits<T>::type, count);
  const std::size_t most = max_bytes(Traits<T>::type, count);
  unsigned char* entry = out + sizeof(Header);
  std::size_t at = sizeof(Header) + directory_bytes(units);
  if (at >= most) return 0;
  std::memset(out + at - 4, 0, 4);
  const Scratch scratch;
  for (std::size_t done = 0; done < count; done += whole, entry += 2) {
    const std::size_t n = std::min(whole, count - done);
    const unsigned char* elements = in + done * sizeof(T);
    prefetch(elements + n * sizeof(T), std::min(whole, count - done - n) * sizeof(T));
    const EncodedUnit unit =
        codec.encode(z, mode, elements, n, out + at, (most - at) / 4, scratch.data());
    const std::size_t bytes = unit.raw ? n * sizeof(T) : std::size_t{unit.words} * 4;
    if (bytes > most - at) return 0;
    if (unit.raw) std::memcpy(out + at, elements, bytes);
    const std::uint16_t size = unit.raw ? raw_unit : static_cast<std::uint16_t>(unit.words);
    std::memcpy(entry, &size, 2);
    at += bytes;
  }
  return at < most ? at : 0;
}

template <class T>
std::size_t encode_elements(const unsigned char* in, std::size_t count, const Grid& grid, Mode mode,
                            unsigned char* out) {
  Header header{format_version, Traits<T>::type, mode, 0, 0, count, 0, grid.bound};
  Quantizer<T> z;
  if (make_quantizer(grid, z)) {
    header.step = static_cast<double>(z.step);
    const std::size_t bytes = encode_units(z, mode, in, count, out);
    if (bytes != 0) return finish(header, out, bytes);
  }
  header.raw = 1;
  header.step = 0;
  if (count != 0) std::memcpy(out + sizeof header, in, count * sizeof(T));
  return finish(header, out, sizeof header + count * sizeof(T));
}

std::uint16_t directory_entry(const unsigned char* directory, std::size_t unit) {
  std::uint16_t size;
  std::memcpy(&size, directory + 2 * unit, 2);
  return size;
}

/// Checks that the units fill the payload exactly.
template <class T>
Status check_directory(const unsigned char* payload, std::size_t bytes, std::size_t count) {
  const std::size_t whole = unit_elements(Traits<T>::type);
  const std::size_t units = unit_count(Traits<T>::type, count);
  std::size_t left = bytes - sizeof(Header);
  if (directory_bytes(units) > left) return Status::truncated;
  left -= directory_bytes(units);
  for (std::size_t u = 0; u < units; ++u) {
    const std::size_t raw = std::min(whole, count - u * whole) * sizeof(T);
    const std::uint16_t size = directory_entry(payload + sizeof(Header), u);
    const std::size_t unit = size == raw_unit ? raw : std::size_t{size} * 4;
    if (unit > raw) return Status::corrupt;
    if (unit > left) return Status::truncated;
    left -= unit;
  }
  return left == 0 ? Status::ok : Status::corrupt;
}

template <class T>
Status decode_units(T step, const unsigned char* payload, unsigned char* out, std::size_t count,
                    Combine how) {
  const UnitCodec<T> codec = unit_codec<T>();
  std::optional<Scratch> scratch;
  if (how != Combine::replace) scratch.emplace();
  auto* const aside = scratch ? static_cast<unsigned char*>(scratch->data()) : nullptr;
  const std::size_t whole = unit_elements(Traits<T>::type);
  const unsigned char* directory = payload + sizeof(Header);
  const unsigned char* at = directory + directory_bytes(unit_count(Traits<T>::type, count));
  for (std::size_t done = 0, u = 0; done < count; done += whole, ++u) {
    const std::size_t n = std::min(whole, count - done);
    const std::uint16_t size = directory_entry(directory, u);
    unsigned char* elements = aside ? aside : out + done * sizeof(T);
    std::size_t bytes = std::size_t{size} * 4;
    if (size == raw_unit) {
      bytes = n * sizeof(T);
      std::memcpy(elements, at, bytes);
    } else if (size == 0) {
      std::memset(elements, 0, n * sizeof(T));
    } else if (!codec.decode(step, at, size, elements, n)) {
      return Status::corrupt;
    }
    if (aside) combine_elements(how, Traits<T>::type, out + done * sizeof(T), aside, n);
    at += bytes;
  }
  return Status::ok;
}

/// Everything about a payload but its units' contents; they follow where it is not raw.
template <class T>
Status check_payload(const unsigned char* payload, std::size_t bytes, std::size_t count,
                     Header& header) {
  if (bytes < sizeof header) return Status::truncated;
  std::memcpy(&header, payload, sizeof header);
  if (header.version != format_version || static_cast<std::uint8_t>(header.mode) > 1) {
    return Status::unsupported;
  }
  if (header.type != Traits<T>::type || header.count != count || header.raw > 1) {
    return Status::corrupt;
  }
  const std::size_t body = bytes - sizeof header;
  if (header.raw == 0) {
    const Status status = check_directory<T>(payload, bytes, count);
    if (status != Status::ok) return status;
  } else if (body / sizeof(T) != count || body % sizeof(T) != 0) {
    return body / sizeof(T) < count ? Status::truncated : Status::corrupt;
  }
  if (header.checksum != payload_checksum(payload, bytes)) return Status::corrupt;
  if (header.raw != 0) return Status::ok;
  const T step = static_cast<T>(header.step);
  const bool valid = std::isnormal(step) && step > 0 && static_cast<double>(step) == header.step;
  return valid ? Status::ok : Status::corrupt;
}

template <class T>
Status decode_elements(const unsigned char* payload, std::size_t bytes, unsigned char* out,
                       std::size_t count, Combine how) {
  Header header;
  const Status status = check_payload<T>(payload, bytes, count, header);
  if (status != Status::ok) return status;
  if (header.raw == 0) {
    return decode_units(static_cast<T>(header.step), payload, out, count, how);
  }
  if (count != 0) combine_elements(how, Traits<T>::type, out, payload + sizeof header, count);
  return Status::ok;
}

/// Walks through the units of a checked payload that is not raw, or of elements.
struct UnitReader {
  const unsigned char* entry;  ///< null: elements lie there
  const unsigned char* at;

  UnitReader() = default;
  UnitReader(const Summand& summand, std::size_t units)
      : entry(nullptr), at(static_cast<const unsigned char*>(summand.payload)) {
    if (summand.is_elements) return;
    entry = at + sizeof(Header);
    at = entry + directory_bytes(units);
  }

  /// Of so many bytes of elements. False where the next unit is raw.
  bool next(std::size_t bytes, CodedUnit& unit) {
    if (!entry) {
      unit = {at, bytes / 4, true};
      at += bytes;
      return true;
    }
    const std::uint16_t size = directory_entry(entry, 0);
    if (size == raw_unit) return false;
    unit = {at, size};
    entry += 2;
    at += std::size_t{size} * 4;
    return true;
  }
};

/// Writes directory and units behind the header, and their end to `at`; of checked payloads that
/// are not raw, and elements. `out`: null, or where.
template <class T>
Status add_units(const Quantizer<T>& z, Mode mode, std::span<const Summand> summands,
                 std::size_t count, unsigned char* out, std::size_t& at, unsigned char* decoded) {
  const UnitCodec<T> codec = unit_codec<T>();
  const std::size_t whole = unit_elements(Traits<T>::type);
  const std::size_t units = unit_count(Traits<T>::type, count);
  const std::size_t most = max_bytes(Traits<T>::type, count);
  UnitReader readers[most_summands];
  for (std::size_t k = 0; k < summands.size(); ++k) readers[k] = {summands[k], units};
  unsigned char* entry = out ? out + sizeof(Header) : nullptr;
  at = sizeof(Header) + directory_bytes(units);
  if (at >= most) return Status::inexact;
  if (out) std::memset(out + at - 4, 0, 4);
  const Scratch scratch;
  for (std::size_t done = 0; done < count; done += whole) {
    const std::size_t n = std::min(whole, count - done);
    CodedUnit coded[most_summands];
    for (std::size_t k = 0; k < summands.size(); ++k) {
      if (!readers[k].next(n * sizeof(T), coded[k])) return Status::inexact;
    }
    EncodedUnit sum;
    const Status status =
        codec.add(z, mode, {coded, summands.size()}, n, out ? out + at : nullptr, (most - at) / 4,
                  decoded ? decoded + done * sizeof(T) : nullptr, sum, scratch.data());
    if (status != Status::ok) return status;
    if (!out) continue;
    const std::size_t bytes = std::size_t{sum.words} * 4;
    if (sum.raw || bytes > most - at) return Status::inexact;
    const auto size = static_cast<std::uint16_t>(sum.words);
    std::memcpy(entry, &size, 2);
    entry += 2;
    at += bytes;
  }
  return at < most ? Status::ok : Status::inexact;
}

template <class T>
Status add_payloads(std::span<const Summand> summands, std::size_t count, unsigned char* out,
                    std::size_t& out_bytes, const EncodedAs& elements, unsigned char* decoded) {
  out_bytes = 0;
  Header headers[most_summands] = {};
  Quantizer<T> z{};
  for (std::size_t k = 0; k < summands.size(); ++k) {
    if (summands[k].is_elements) {
      if (!make_quantizer(elements.grid, z)) return Status::inexact;
      headers[k] = {format_version,
                    Traits<T>::type,
                    elements.mode,
                    0,
                    0,
                    count,
                    static_cast<double>(z.step),
                    elements.grid.bound};
      continue;
    }
    const auto* payload = static_cast<const unsigned char*>(summands[k].payload);
    const Status status = check_payload<T>(payload, summands[k].bytes, count, headers[k]);
    if (status != Status::ok) return status;
  }
  Header sum = headers[0];
  sum.checksum = 0;
  for (std::size_t k = 1; k < summands.size(); ++k) {
    const Status status = join(sum, headers[k]);
    if (status != Status::ok) return status;
  }
  if (count == 0) {
    if (out) out_bytes = finish(sum, out, sizeof(Header));
    return Status::ok;
  }
  std::size_t bytes;
  z.step = static_cast<T>(sum.step);
  const Status status = add_units<T>(z, sum.mode, summands, count, out, bytes, decoded);
  if (status == Status::ok && out) out_bytes = finish(sum, out, bytes);
  return status;
}

}  // namespace

std::size_t max_bytes(ElementType type, std::size_t count) {
  return sizeof(Header) + count * element_size(type);
}

bool quantizer_of(const Grid& grid, Quantizer<float>& z) {
  return compute([&] { return make_quantizer(grid, z); });
}

bool quantizer_of(const Grid& grid, Quantizer<double>& z) {
  return compute([&] { return make_quantizer(grid, z); });
}

std::size_t encode(ElementType type, const void* in, std::size_t count, const Grid& grid, Mode mode,
                   void* out) {
  const auto* from = static_cast<const unsigned char*>(in);
  auto* to = static_cast<unsigned char*>(out);
  return compute([&] {
    return type == ElementType::f32 ? encode_elements<float>(from, count, grid, mode, to)
                                    : encode_elements<double>(from, count, grid, mode, to);
  });
}

double told_bound(const void* payload, std::size_t bytes) {
  Header header;
  if (bytes < sizeof header) return 0;
  std::memcpy(&header, payload, sizeof header);
  return header.raw == 0 ? header.bound : 0;
}

Status decode(ElementType type, const void* payload, std::size_t bytes, void* out,
              std::size_t count, Combine how) {
  const auto* from = static_cast<const unsigned char*>(payload);
  auto* to = static_cast<unsigned char*>(out);
  return compute([&] {
    return type == ElementType::f32 ? decode_elements<float>(from, bytes, to, count, how)
                                    : decode_elements<double>(from, bytes, to, count, how);
  });
}

Status add(ElementType type, std::span<const Summand> summands, std::size_t count, void* out,
           std::size_t& out_bytes, const EncodedAs& elements, void* decoded) {
  auto* to = static_cast<unsigned char*>(out);
  auto* into = static_cast<unsigned char*>(decoded);
  return compute([&] {
    return type == ElementType::f32
               ? add_payloads<float>(summands, count, to, out_bytes, elements, into)
               : add_payloads<double>(summands, count, to, out_bytes, elements, into);
  });
}

}  // namespace mpress::codec::szp
