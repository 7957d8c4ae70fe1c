#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/float_environment.hpp"
#include "codec/isa.hpp"
#include "codec/scratch.hpp"
#include "codec/zfp/block.hpp"
#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

static_assert(std::endian::native == std::endian::little);

namespace mpress::codec::zfp {
namespace {

/// Appends bits to a byte sequence, whole words at a time.
class BitWriter {
 public:
  explicit BitWriter(unsigned char* out) : out_(out) {}

  void append(std::uint64_t value, unsigned bits) {  // 1 to 64; nothing set above them
    word_ |= value << used_;
    if (used_ + bits >= 64) {
      std::memcpy(out_, &word_, 8);
      out_ += 8;
      word_ = used_ == 0 ? 0 : value >> (64 - used_);
      used_ += bits - 64;
    } else {
      used_ += bits;
    }
  }

  /// Writes the rest, and zeros up to `end`.
  void finish(unsigned char* end) {
    for (; out_ < end; word_ >>= 8) *out_++ = static_cast<unsigned char>(word_);
  }

 private:
  unsigned char* out_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
};

/// Reads bits at any place of a byte sequence.
class BitReader {
 public:
  BitReader(const unsigned char* in, std::size_t bytes) : in_(in), bytes_(bytes) {}

  std::uint64_t get(std::uint64_t at, unsigned bits) const {  // 1 to 64
    const std::size_t byte = at / 8;
    const unsigned shift = at % 8;
    std::uint64_t value = load(byte) >> shift;
    if (shift + bits > 64) value |= load(byte + 8) << (64 - shift);
    return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
  }

 private:
  std::uint64_t load(std::size_t byte) const {
    std::uint64_t value = 0;
    if (bytes_ >= 8 && byte <= bytes_ - 8) {
      std::memcpy(&value, in_ + byte, 8);
    } else if (byte < bytes_) {
      std::memcpy(&value, in_ + byte, bytes_ - byte);
    }
    return value;
  }

  const unsigned char* in_;
  std::size_t bytes_;
};

/// Elements of a partial block, padded (libzfp: pad_block()).
template <typename Word>
void load_block(const unsigned char* in, std::size_t count, Word (&x)[4]) {
  std::memcpy(x, in, std::min(count, kBlock) * sizeof(Word));
  if (count < 2) x[1] = x[0];
  if (count < 3) x[2] = x[1];
  if (count < 4) x[3] = x[0];
}

template <typename Element, int Words>
void encode_portable(const unsigned char* in, std::size_t count, std::size_t first_block,
                     std::uint32_t block_bits, unsigned char* out, unsigned char* end,
                     ExceptionList& exceptions) {
  using Word = typename Traits<Element>::Word;
  BitWriter writer(out);
  for (std::size_t at = 0; at < count; at += kBlock) {
    Word x[4];
    load_block(in + at * sizeof(Word), count - at, x);
    BlockBits<Words> bits;
    if (encode_block<Element>(x, block_bits, kTables, bits)) {
      exceptions.add(first_block + at / kBlock, in + at * sizeof(Word),
                     std::min(count - at, kBlock));
    }
    unsigned left = block_bits;
    for (int i = 0; i < Words && left != 0; ++i) {
      const unsigned n = std::min(left, 64u);
      writer.append(n == 64 ? bits.word[i] : bits.word[i] & ((std::uint64_t{1} << n) - 1), n);
      left -= n;
    }
  }
  writer.finish(end);
}

template <typename Element, int Words>
void decode_portable(const BitReader& reader, std::size_t first_block, std::uint32_t block_bits,
                     unsigned char* out, std::size_t count) {
  for (std::size_t at = 0; at < count; at += kBlock) {
    std::uint64_t place = (first_block + at / kBlock) * std::uint64_t{block_bits};
    BlockBits<Words> bits;
    unsigned left = block_bits;
    for (int i = 0; i < Words && left != 0; ++i) {
      const unsigned n = std::min(left, 64u);
      bits.word[i] = reader.get(place, n);
      place += n;
      left -= n;
    }
    Element x[4];
    decode_block<Element>(bits, block_bits, kTables, x);
    std::memcpy(out + at * sizeof(Element), x, std::min(count - at, kBlock) * sizeof(Element));
  }
}

std::size_t encode_kernel([[maybe_unused]] ElementType type, [[maybe_unused]] const void* in,
                          [[maybe_unused]] std::size_t blocks,
                          [[maybe_unused]] std::uint32_t block_bits,
                          [[maybe_unused]] unsigned char* out,
                          [[maybe_unused]] ExceptionList& exceptions) {
#if defined(MPRESS_X86_KERNELS)
  if (block_bits > kKernelBlockBits) return 0;
  switch (host_isa()) {
    case Isa::avx512: return avx512::encode_groups(type, in, blocks, block_bits, out, exceptions);
    case Isa::avx2: return avx2::encode_groups(type, in, blocks, block_bits, out, exceptions);
    case Isa::portable: break;
  }
#endif
  return 0;
}

std::size_t decode_kernel([[maybe_unused]] ElementType type,
                          [[maybe_unused]] const unsigned char* in,
                          [[maybe_unused]] std::size_t bytes,
                          [[maybe_unused]] std::uint32_t block_bits,
                          [[maybe_unused]] std::size_t blocks, [[maybe_unused]] void* out) {
#if defined(MPRESS_X86_KERNELS)
  if (block_bits > kKernelBlockBits) return 0;
  switch (host_isa()) {
    case Isa::avx512: return avx512::decode_groups(type, in, bytes, block_bits, blocks, out);
    case Isa::avx2: return avx2::decode_groups(type, in, bytes, block_bits, blocks, out);
    case Isa::portable: break;
  }
#endif
  return 0;
}

template <typename Element>
void encode_stream(ElementType type, const unsigned char* in, std::size_t count,
                   std::uint32_t block_bits, unsigned char* out, ExceptionList& exceptions) {
  unsigned char* end = out + stream_bytes(type, count, block_bits);
  const std::size_t done = encode_kernel(type, in, count / kBlock, block_bits, out, exceptions);
  in += done * kBlock * sizeof(Element);
  out += done / 8 * block_bits;
  const std::size_t left = count - done * kBlock;
  if (block_bits <= 64) {
    encode_portable<Element, 1>(in, left, done, block_bits, out, end, exceptions);
  } else {
    encode_portable<Element, sizeof(Element) / 2>(in, left, done, block_bits, out, end, exceptions);
  }
}

template <typename Element>
void decode_stream(ElementType type, const unsigned char* in, std::uint32_t block_bits,
                   unsigned char* out, std::size_t count) {
  const std::size_t bytes = stream_bytes(type, count, block_bits);
  const std::size_t done = decode_kernel(type, in, bytes, block_bits, count / kBlock, out);
  out += done * kBlock * sizeof(Element);
  const std::size_t left = count - done * kBlock;
  const BitReader reader(in, bytes);
  if (block_bits <= 64) {
    decode_portable<Element, 1>(reader, done, block_bits, out, left);
  } else {
    decode_portable<Element, sizeof(Element) / 2>(reader, done, block_bits, out, left);
  }
}

std::size_t finish(unsigned char* out, std::size_t body, std::uint64_t exceptions,
                   std::uint32_t form) {
  Footer footer{exceptions, form, 0};
  std::memcpy(out + body, &footer, sizeof footer);
  footer.checksum = checksum(out, body + offsetof(Footer, checksum));
  std::memcpy(out + body, &footer, sizeof footer);
  return body + sizeof footer;
}

std::size_t encode_raw(ElementType type, const void* in, std::size_t count, unsigned char* out) {
  const std::size_t bytes = count * element_size(type);
  const std::size_t body = raw_bytes(type, count);
  std::memcpy(out, in, bytes);
  std::memset(out + bytes, 0, body - bytes);
  return finish(out, body, 0, kFormRaw);
}

/// The exceptions of a payload, in the order of their blocks.
class ExceptionReader {
 public:
  ExceptionReader(ElementType type, const unsigned char* records, std::uint64_t count)
      : type_(type), record_(records), left_(count) {}

  /// The checksum finds accidents, not intent: do the blocks ascend, below `blocks`?
  bool sound(std::uint64_t blocks) const {
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < left_; ++i) {
      const std::uint64_t block = block_of(record_ + i * exception_bytes(type_));
      if (block < next || block >= blocks) return false;
      next = block + 1;
    }
    return true;
  }

  /// Puts those among `count` elements at `out`, whose first block is `first`, back. Called for
  /// one part of the message after the other.
  void restore(std::uint64_t first, unsigned char* out, std::size_t count) {
    const std::uint64_t end = first + block_count(count);
    for (; left_ != 0 && block_of(record_) < end; --left_, record_ += exception_bytes(type_)) {
      const std::size_t at = (block_of(record_) - first) * kBlock;
      const std::size_t elements = std::min<std::size_t>(count - at, kBlock);
      std::memcpy(out + at * element_size(type_), record_ + 8, elements * element_size(type_));
    }
  }

 private:
  static std::uint64_t block_of(const unsigned char* record) {
    std::uint64_t block;
    std::memcpy(&block, record, 8);
    return block;
  }

  ElementType type_;
  const unsigned char* record_;
  std::uint64_t left_;
};

/// Decodes part by part into a buffer that stays in the cache, and combines from there.
constexpr std::size_t part_elements = 2048;
static_assert(part_elements / kBlock % 64 == 0, "parts of the stream start at whole words");

template <typename Element>
void decode_combined(ElementType type, const unsigned char* in, std::uint32_t block_bits,
                     ExceptionReader exceptions, Combine how, unsigned char* out,
                     std::size_t count) {
  const Scratch scratch;
  auto& part = scratch.as<unsigned char[part_elements * sizeof(Element)]>();
  for (std::size_t at = 0; at < count; at += part_elements) {
    const std::size_t n = std::min(part_elements, count - at);
    decode_stream<Element>(type, in + at / kBlock / 8 * block_bits, block_bits, part, n);
    exceptions.restore(at / kBlock, part, n);
    combine_elements(how, type, out + at * sizeof(Element), part, n);
  }
}

}  // namespace

void ExceptionList::add(std::uint64_t block, const void* elements, std::size_t count_in_block) {
  if (count++ >= capacity) return;
  const std::size_t bytes = kBlock * element_size(type);
  unsigned char record[8 + kBlock * 8] = {};
  std::memcpy(record, &block, 8);
  std::memcpy(record + 8, elements, count_in_block * element_size(type));
  std::memcpy(records + (count - 1) * exception_bytes(type), record, 8 + bytes);
}

std::size_t encode(ElementType type, const void* in, std::size_t count, std::uint32_t block_bits,
                   void* out) {
  const auto* from = static_cast<const unsigned char*>(in);
  auto* to = static_cast<unsigned char*>(out);
  const std::size_t stream = stream_bytes(type, count, block_bits);
  const std::size_t room = max_bytes(type, count, block_bits) - sizeof(Footer) - stream;
  ExceptionList exceptions{type, to + stream, room / exception_bytes(type)};
  compute([&] {
    const auto encode = type == ElementType::f32 ? encode_stream<float> : encode_stream<double>;
    encode(type, from, count, block_bits, to, exceptions);
  });
  if (exceptions.count > exceptions.capacity) return encode_raw(type, in, count, to);
  return finish(to, stream + exceptions.count * exception_bytes(type), exceptions.count,
                kFormStream);
}

Status decode(ElementType type, const void* payload, std::size_t bytes, std::uint32_t block_bits,
              void* out, std::size_t count, Combine how) {
  if (block_bits < min_block_bits(type) || block_bits > max_block_bits(type)) {
    return Status::unsupported;
  }
  const std::size_t stream = stream_bytes(type, count, block_bits);
  const std::size_t raw = raw_bytes(type, count);
  if (bytes < std::min(stream, raw) + sizeof(Footer)) return Status::truncated;
  const auto* from = static_cast<const unsigned char*>(payload);
  auto* to = static_cast<unsigned char*>(out);
  const std::size_t body = bytes - sizeof(Footer);
  Footer footer;
  std::memcpy(&footer, from + body, sizeof footer);
  if (checksum(from, body + offsetof(Footer, checksum)) != footer.checksum) return Status::corrupt;

  if (footer.form == kFormRaw) {
    if (body != raw || footer.exceptions != 0) return Status::corrupt;
    if (count != 0) compute([&] { combine_elements(how, type, to, from, count); });
    return Status::ok;
  }
  if (footer.form != kFormStream || body < stream) return Status::corrupt;
  if ((body - stream) / exception_bytes(type) != footer.exceptions ||
      (body - stream) % exception_bytes(type) != 0) {
    return Status::corrupt;
  }
  ExceptionReader exceptions(type, from + stream, footer.exceptions);
  if (!exceptions.sound(block_count(count))) return Status::corrupt;
  if (how != Combine::replace) {
    compute([&] {
      const auto decode =
          type == ElementType::f32 ? decode_combined<float> : decode_combined<double>;
      decode(type, from, block_bits, exceptions, how, to, count);
    });
    return Status::ok;
  }
  compute([&] {
    const auto decode = type == ElementType::f32 ? decode_stream<float> : decode_stream<double>;
    decode(type, from, block_bits, to, count);
  });
  exceptions.restore(0, to, count);
  return Status::ok;
}

}  // namespace mpress::codec::zfp
