#include "codec/checksum.hpp"

#include <cstring>

#include "codec/isa.hpp"

namespace mpress {
namespace {

// One loop, compiled for each instruction set: the compiler vectorises it.
[[gnu::always_inline]] inline std::uint32_t sum_words(const unsigned char* data, std::size_t words,
                                                      std::uint32_t first) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, data + 4 * i, 4);
    sum += word * checksum_weight(first + static_cast<std::uint32_t>(i));
  }
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] std::uint32_t sum_words_avx512(const unsigned char* data,
                                                          std::size_t words, std::uint32_t first) {
  return sum_words(data, words, first);
}
[[gnu::target("avx2")]] std::uint32_t sum_words_avx2(const unsigned char* data, std::size_t words,
                                                     std::uint32_t first) {
  return sum_words(data, words, first);
}
#endif

std::uint32_t sum_whole_words(const unsigned char* data, std::size_t words, std::uint32_t first) {
#if defined(__x86_64__)
  if (host_isa() == Isa::avx512) return sum_words_avx512(data, words, first);
  if (host_isa() == Isa::avx2) return sum_words_avx2(data, words, first);
#endif
  return sum_words(data, words, first);
}

}  // namespace

std::uint32_t checksum(const void* data, std::size_t bytes, std::uint32_t first) {
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t words = bytes / 4;
  std::uint32_t sum = sum_whole_words(p, words, first);
  if (bytes % 4 != 0) {
    std::uint32_t last = 0;
    std::memcpy(&last, p + 4 * words, bytes % 4);
    sum += last * checksum_weight(first + static_cast<std::uint32_t>(words));
  }
  return sum;
}

}  // namespace mpress
