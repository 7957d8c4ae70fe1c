#include "codec/combine.hpp"

#include <algorithm>
#include <cstring>

namespace mpress::codec {
namespace {

// Elements need not be aligned, and may alias nothing else.
template <class T>
struct __attribute__((packed, may_alias)) Loose {
  T value;
};

template <Combine how, class T>
void combine_loop(Loose<T>* have, const Loose<T>* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    have[i].value = combine<how>(have[i].value, values[i].value);
  }
}

template <class T>
void combine_as(Combine how, unsigned char* have, const unsigned char* values, std::size_t count) {
  auto* to = reinterpret_cast<Loose<T>*>(have);
  const auto* from = reinterpret_cast<const Loose<T>*>(values);
  switch (how) {
    case Combine::replace: std::memcpy(have, values, count * sizeof(T)); break;
    case Combine::sum: combine_loop<Combine::sum>(to, from, count); break;
    case Combine::min: combine_loop<Combine::min>(to, from, count); break;
    case Combine::max: combine_loop<Combine::max>(to, from, count); break;
  }
}

}  // namespace

void combine_elements(Combine how, ElementType type, void* have, const void* values,
                      std::size_t count) {
  auto* to = static_cast<unsigned char*>(have);
  const auto* from = static_cast<const unsigned char*>(values);
  if (type == ElementType::f32) {
    combine_as<float>(how, to, from, count);
  } else {
    combine_as<double>(how, to, from, count);
  }
}

void combine_all(Combine how, ElementType type, std::span<const void* const> inputs, void* out,
                 std::size_t count) {
  constexpr std::size_t tile_bytes = 8192;  // of the first-level cache
  alignas(64) unsigned char tile[tile_bytes];
  const std::size_t width = element_size(type);
  const std::size_t step = tile_bytes / width;
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t elements = std::min(step, count - first);
    Combine next = Combine::replace;
    for (const void* input : inputs) {
      const auto* from = static_cast<const unsigned char*>(input) + first * width;
      combine_elements(next, type, tile, from, elements);
      next = how;
    }
    std::memcpy(static_cast<unsigned char*>(out) + first * width, tile, elements * width);
  }
}

}  // namespace mpress::codec
