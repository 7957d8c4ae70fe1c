// Entry points of mpc: payloads out of units, the choice of the distance, dispatch.
#include <bit>
#include <cstring>

#include "codec/isa.hpp"
#include "codec/mpc/format.hpp"
#include "codec/mpc/portable.hpp"
#include "codec/scratch.hpp"

namespace mpress::codec::mpc {
namespace portable {
namespace {

constexpr UnitCodec<std::uint32_t> unit32{Unit<Kernel<std::uint32_t>>::encode,
                                          Unit<Kernel<std::uint32_t>>::decode};
constexpr UnitCodec<std::uint64_t> unit64{Unit<Kernel<std::uint64_t>>::encode,
                                          Unit<Kernel<std::uint64_t>>::decode};

}  // namespace
}  // namespace portable

#ifdef MPRESS_X86_KERNELS
namespace avx2 {
extern const UnitCodec<std::uint32_t> unit32;
extern const UnitCodec<std::uint64_t> unit64;
}  // namespace avx2
namespace avx512 {
extern const UnitCodec<std::uint32_t> unit32;
extern const UnitCodec<std::uint64_t> unit64;
}  // namespace avx512
#endif

namespace {

using Bytes = unsigned char;

template <class Word>
const UnitCodec<Word>& unit_codec() {
  constexpr bool narrow = sizeof(Word) == 4;
#ifdef MPRESS_X86_KERNELS
  if (host_isa() == Isa::avx512) {
    if constexpr (narrow)
      return avx512::unit32;
    else
      return avx512::unit64;
  }
  if (host_isa() == Isa::avx2) {
    if constexpr (narrow)
      return avx2::unit32;
    else
      return avx2::unit64;
  }
#endif
  if constexpr (narrow)
    return portable::unit32;
  else
    return portable::unit64;
}

// A unit on its way in or out: elements one component after another, padded to whole groups by
// repeating the last, aligned.
template <class Word>
struct Staging {
  alignas(64) Word elements[kUnit<Word>];
  Bytes last[kUnitBytes + kSlack];  // in the place of where the payload ends

  void gather(const Bytes* in, unsigned n, unsigned dim) {
    if (dim == 1) {
      std::memcpy(elements, in, n * sizeof(Word));
    } else {
      unsigned k = 0;
      for (unsigned c = 0; c < dim; ++c) {
        for (unsigned i = c; i < n; i += dim) {
          std::memcpy(&elements[k++], in + i * sizeof(Word), sizeof(Word));
        }
      }
    }
    for (unsigned i = n; i % kGroup != 0; ++i) elements[i] = elements[n - 1];
  }

  void scatter(Bytes* out, unsigned n, unsigned dim) const {
    if (dim == 1) {
      std::memcpy(out, elements, n * sizeof(Word));
      return;
    }
    unsigned k = 0;
    for (unsigned c = 0; c < dim; ++c) {
      for (unsigned i = c; i < n; i += dim) {
        std::memcpy(out + i * sizeof(Word), &elements[k++], sizeof(Word));
      }
    }
  }
};

template <class Word>
struct EncodeStaging : Staging<Word> {
  EncodingUnit<Word> unit;
};

template <class Word>
struct DecodeStaging : Staging<Word> {
  alignas(64) Bytes aside[kUnitBytes];
};

template <class Word>
bool usable_in_place(const void* p, unsigned n, unsigned dim) {
  return dim == 1 && n == kUnit<Word> && reinterpret_cast<std::uintptr_t>(p) % alignof(Word) == 0;
}

std::uint32_t header_checksum(Header header) {
  header.checksum = 0;
  return checksum(&header, sizeof(header));
}

constexpr std::uint32_t word_index(std::size_t offset) {
  return static_cast<std::uint32_t>(offset / 4);
}

// Appends the units behind the directory and sums them; 0 where they need as much room as the
// elements. `out` is the payload, of at most sizeof(Header) + raw bytes.
template <class Word>
std::size_t encode_units(const Bytes* in, std::size_t count, unsigned dim, Bytes* out,
                         std::uint32_t& sum) {
  const UnitCodec<Word>& codec = unit_codec<Word>();
  const std::size_t units = unit_count(count, sizeof(Word));
  const std::size_t limit = sizeof(Header) + count * sizeof(Word);
  const std::size_t directory = directory_bytes(units);
  std::size_t end = sizeof(Header) + directory;
  if (end >= limit) return 0;

  const Scratch scratch;
  auto& staging = scratch.as<EncodeStaging<Word>>();
  for (std::size_t u = 0; u < units; ++u) {
    const Bytes* const from = in + u * kUnitBytes;
    const std::size_t left = count - u * kUnit<Word>;
    const unsigned n = left < kUnit<Word> ? static_cast<unsigned>(left) : kUnit<Word>;
    const Word* elements = reinterpret_cast<const Word*>(from);
    if (!usable_in_place<Word>(from, n, dim)) {
      staging.gather(from, n, dim);
      elements = staging.elements;
    }
    const bool roomy = limit - end >= kUnitBytes + kSlack;
    Bytes* const to = roomy ? out + end : staging.last;
    const unsigned words = codec.encode(elements, n, to, staging.unit);
    if (words * 4 >= limit - end) return 0;
    if (!roomy) std::memcpy(out + end, staging.last, words * 4);
    const std::uint16_t size = static_cast<std::uint16_t>(words);
    std::memcpy(out + sizeof(Header) + 2 * u, &size, 2);
    sum += checksum(out + end, words * 4, word_index(end));
    end += words * 4;
  }
  if (units % 2 != 0) std::memset(out + sizeof(Header) + 2 * units, 0, 2);
  sum += checksum(out + sizeof(Header), directory, word_index(sizeof(Header)));
  return end;
}

template <class Word>
constexpr ElementType type_of = sizeof(Word) == 4 ? ElementType::f32 : ElementType::f64;

template <class Word>
Status decode_units(const Bytes* payload, std::size_t bytes, unsigned dim, Bytes* out,
                    std::size_t count, Combine how, std::uint32_t& sum) {
  const UnitCodec<Word>& codec = unit_codec<Word>();
  const std::size_t units = unit_count(count, sizeof(Word));
  const std::size_t directory = directory_bytes(units);
  std::size_t at = sizeof(Header) + directory;
  if (at > bytes) return Status::truncated;
  sum += checksum(payload + sizeof(Header), directory, word_index(sizeof(Header)));

  const Scratch scratch;
  auto& staging = scratch.as<DecodeStaging<Word>>();
  for (std::size_t u = 0; u < units; ++u) {
    const std::size_t left = count - u * kUnit<Word>;
    const unsigned n = left < kUnit<Word> ? static_cast<unsigned>(left) : kUnit<Word>;
    std::uint16_t words;
    std::memcpy(&words, payload + sizeof(Header) + 2 * u, 2);
    if (words > n * (sizeof(Word) / 4)) return Status::corrupt;
    if (words * std::size_t{4} > bytes - at) return Status::truncated;
    sum += checksum(payload + at, words * std::size_t{4}, word_index(at));
    const Bytes* from = payload + at;
    at += words * std::size_t{4};
    if (bytes - at < kSlack) {
      std::memcpy(staging.last, from, words * std::size_t{4});
      std::memset(staging.last + words * std::size_t{4}, 0, kSlack);
      from = staging.last;
    }
    Bytes* const to = how == Combine::replace ? out + u * kUnitBytes : staging.aside;
    const bool in_place = usable_in_place<Word>(to, n, dim);
    Word* const elements = in_place ? reinterpret_cast<Word*>(to) : staging.elements;
    if (!codec.decode(from, words, n, elements)) return Status::corrupt;
    if (!in_place) staging.scatter(to, n, dim);
    if (to == staging.aside) combine_elements(how, type_of<Word>, out + u * kUnitBytes, to, n);
  }
  return at == bytes ? Status::ok : Status::corrupt;
}

// The planes that `run` elements behind the first kMaxDim need in first differences at distance
// `dim`, one component after another.
template <class Word>
std::uint32_t planes_at(const Word* ordered, unsigned run, unsigned dim) {
  std::uint32_t planes = 0;
  Word any = 0;
  unsigned n = 0;
  for (unsigned c = 0; c < dim; ++c) {
    for (unsigned i = kMaxDim + c; i < kMaxDim + run; i += dim) {
      any |= zigzag<Word>(ordered[i] - ordered[i - dim]);
      if (++n % kBlock == 0) {
        planes += static_cast<std::uint32_t>(std::bit_width(any));
        any = 0;
      }
    }
  }
  return planes;
}

template <class Word>
unsigned best_dim(const Bytes* in, std::size_t count) {
  using namespace choice;
  if (count < span) return 1;
  const Scratch scratch;
  auto& ordered = scratch.as<Word[span]>();
  std::uint32_t cost[candidates] = {};
  bool dropped[candidates] = {};
  for (unsigned phase = 0; phase < phases; ++phase) {
    for (unsigned r = phase; r < runs(count); r += phases) {
      std::memcpy(ordered, in + start(count, r) * sizeof(Word), sizeof(ordered));
      const Extent<Word> extent = portable::Kernel<Word>::range(ordered, span);
      const Scale<Word> scale = scale_of<Word>(unit_word(extent));
      for (Word& w : ordered) w = to_ordered(w, scale);
      const std::uint32_t dense = planes_at(ordered, run, 1);
      if (dense == 0) continue;
      cost[0] += dense;
      for (unsigned d = 1; d < candidates; ++d) {
        if (!dropped[d]) cost[d] += planes_at(ordered, run, dim(d));
      }
    }
    bool any_left = false;
    for (unsigned d = 1; d < candidates; ++d) {
      dropped[d] = dropped[d] || cost[d] > cost[0];
      any_left = any_left || !dropped[d];
    }
    if (!any_left) return 1;
  }
  unsigned best = 0;
  for (unsigned d = 1; d < candidates; ++d) {
    if (!dropped[d] && cost[d] + margin(count) < cost[0] && cost[d] < cost[best]) best = d;
  }
  return dim(best);
}

}  // namespace

std::size_t max_bytes(ElementType type, std::size_t count) {
  return sizeof(Header) + count * element_size(type);
}

unsigned choose_dim(ElementType type, const void* in, std::size_t count) {
  return type == ElementType::f32 ? best_dim<std::uint32_t>(static_cast<const Bytes*>(in), count)
                                  : best_dim<std::uint64_t>(static_cast<const Bytes*>(in), count);
}

std::size_t encode(ElementType type, const void* in, std::size_t count, unsigned dim, void* out) {
  const Bytes* const from = static_cast<const Bytes*>(in);
  Bytes* const to = static_cast<Bytes*>(out);
  Header header{kVersion, 0,    static_cast<std::uint8_t>(dim), static_cast<std::uint8_t>(type),
                0,        count};
  std::uint32_t sum = 0;
  std::size_t bytes = type == ElementType::f32
                          ? encode_units<std::uint32_t>(from, count, dim, to, sum)
                          : encode_units<std::uint64_t>(from, count, dim, to, sum);
  if (bytes == 0) {
    header.flags = kFlagRaw;
    header.dim = 1;
    const std::size_t raw = count * element_size(type);
    if (raw != 0) std::memcpy(to + sizeof(Header), from, raw);
    sum = checksum(to + sizeof(Header), raw, word_index(sizeof(Header)));
    bytes = sizeof(Header) + raw;
  }
  header.checksum = sum + header_checksum(header);
  std::memcpy(to, &header, sizeof(header));
  return bytes;
}

Status decode(ElementType type, const void* payload, std::size_t bytes, void* out,
              std::size_t count, Combine how) {
  const Bytes* const from = static_cast<const Bytes*>(payload);
  Bytes* const to = static_cast<Bytes*>(out);
  Header header;
  if (bytes < sizeof(header)) return Status::truncated;
  std::memcpy(&header, from, sizeof(header));
  if (header.version != kVersion || (header.flags & ~kFlagRaw) != 0) return Status::unsupported;
  if (header.type != static_cast<std::uint8_t>(type) || header.count != count || header.dim < 1 ||
      header.dim > kMaxDim) {
    return Status::corrupt;
  }
  std::uint32_t sum = header_checksum(header);
  if (header.flags & kFlagRaw) {
    const std::size_t raw = bytes - sizeof(header);
    if (raw / element_size(type) < count) return Status::truncated;
    if (raw != count * element_size(type)) return Status::corrupt;
    sum += checksum(from + sizeof(header), raw, word_index(sizeof(header)));
    if (raw != 0) combine_elements(how, type, to, from + sizeof(header), count);
  } else {
    const Status status =
        type == ElementType::f32
            ? decode_units<std::uint32_t>(from, bytes, header.dim, to, count, how, sum)
            : decode_units<std::uint64_t>(from, bytes, header.dim, to, count, how, sum);
    if (status != Status::ok) return status;
  }
  return sum == header.checksum ? Status::ok : Status::corrupt;
}

}  // namespace mpress::codec::mpc
