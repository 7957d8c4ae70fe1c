// Reading payloads that nobody has checked: headers, directories, words.
#pragma once

#include "codec/szp/cuda_unit.cuh"

namespace mpress::codec::szp::cuda {

using codec::cuda::Result;
using codec::cuda::Source;

/// A payload whose header has been looked at.
struct Payload {
  const unsigned char* data;
  std::uint64_t bytes;
  Header header;

  __device__ const std::uint32_t* words() const {
    return reinterpret_cast<const std::uint32_t*>(data);
  }
  __device__ const std::uint16_t* directory() const {
    return reinterpret_cast<const std::uint16_t*>(data + sizeof(Header));
  }
};

/// Reads the header, and the payload's own report where there is one. Where the status is ok, the
/// directory lies within the payload, or the elements do and fill it. Sizes and words of the units,
/// the checksum and the step are still to be checked.
template <class T>
__device__ Status open_payload(const Source& from, std::uint64_t count, Payload& p) {
  p.data = from.data;
  p.bytes = from.bytes;
  if (from.encoded != nullptr) {
    const auto* report = reinterpret_cast<const volatile Result*>(from.encoded);
    const auto status =
        static_cast<Status>(*reinterpret_cast<const volatile std::uint8_t*>(&from.encoded->status));
    if (status != Status::ok) return status;
    if (report->bytes > from.bytes) return Status::truncated;
    p.bytes = report->bytes;
  }
  if (p.bytes < sizeof(Header)) return Status::truncated;
  uint4 words[2];
  words[0] = reinterpret_cast<const uint4*>(p.data)[0];
  words[1] = reinterpret_cast<const uint4*>(p.data)[1];
  memcpy(&p.header, words, sizeof words);
  const Header& h = p.header;
  if (h.version != format_version || static_cast<std::uint8_t>(h.mode) > 1) {
    return Status::unsupported;
  }
  if (h.type != Traits<T>::type || h.count != count || h.raw > 1) return Status::corrupt;
  const std::uint64_t body = p.bytes - sizeof(Header);
  if (h.raw != 0) {
    if (body / sizeof(T) == h.count && body % sizeof(T) == 0) return Status::ok;
    return body / sizeof(T) < h.count ? Status::truncated : Status::corrupt;
  }
  return directory_bytes(unit_count(Traits<T>::type, count)) > body ? Status::truncated
                                                                    : Status::ok;
}

/// Whether a payload that is not raw has a step that units can be scaled with.
template <class T>
__device__ bool step_is_valid(const Header& header) {
  const T step = static_cast<T>(header.step);
  const bool normal =
      step >= std::numeric_limits<T>::min() && step <= std::numeric_limits<T>::max();
  return normal && static_cast<double>(step) == header.step;
}

/// The thread's part of the words of units [first, end), by their directory entries; `first` is a
/// multiple of 8. `threads` of the block, one behind the other, share them.
template <class T, unsigned threads = Shape<T>::threads>
__device__ std::uint64_t directory_part(const std::uint16_t* directory, std::uint32_t first,
                                        std::uint32_t end) {
  const unsigned mine = threadIdx.x % threads;
  std::uint64_t sum = 0;
  const auto add = [&](std::uint32_t entry) { sum += entry == raw_unit ? Shape<T>::words : entry; };
  const auto* chunks = reinterpret_cast<const uint4*>(directory);
#pragma unroll 4
  for (unsigned i = first / 8 + mine; i < end / 8; i += threads) {
    const uint4 chunk = chunks[i];
    for (std::uint32_t pair : {chunk.x, chunk.y, chunk.z, chunk.w}) {
      add(pair & 0xFFFF);
      add(pair >> 16);
    }
  }
  if (mine < end % 8) add(directory[end / 8 * 8 + mine]);
  return sum;
}

/// Copies `words` words into shared memory, where `place(i)` tells; returns their checksum part.
template <unsigned threads, class Place>
__device__ __forceinline__ std::uint32_t load_words(std::uint32_t* to, const std::uint32_t* from,
                                                    unsigned words, std::uint64_t index,
                                                    Place place) {
  std::uint32_t sum = 0;
  constexpr unsigned batch = 8;
  for (unsigned first = threadIdx.x; first < words; first += batch * threads) {
    std::uint32_t word[batch];
#pragma unroll
    for (unsigned k = 0; k < batch; ++k) {
      const unsigned i = first + k * threads;
      word[k] = i < words ? from[i] : 0;
    }
#pragma unroll
    for (unsigned k = 0; k < batch; ++k) {
      const unsigned i = first + k * threads;
      if (i >= words) break;
      to[place(i)] = word[k];
      sum += weigh(word[k], index + i);
    }
  }
  return sum;
}

}  // namespace mpress::codec::szp::cuda
