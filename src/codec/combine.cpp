#include "codec/combine.hpp"

#include <algorithm>
#include <cstring>

#include "codec/scratch.hpp"

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
    case Combine::prod: combine_loop<Combine::prod>(to, from, count); break;
  }
}

template <class T>
void widen_as(bool is_first, double* sums, const void* values, std::size_t count) {
  const auto* from = static_cast<const Loose<T>*>(values);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(from[i].value);
    sums[i] = is_first ? value : sums[i] + value;
  }
}

template <class T>
void narrow_as(void* elements, const double* sums, std::size_t count) {
  auto* const to = static_cast<Loose<T>*>(elements);
  for (std::size_t i = 0; i < count; ++i) to[i].value = static_cast<T>(sums[i]);
}

void combine_some(Combine how, ElementType type, void* have, const void* values,
                  std::size_t count) {
  auto* to = static_cast<unsigned char*>(have);
  const auto* from = static_cast<const unsigned char*>(values);
  if (type == ElementType::f32) {
    combine_as<float>(how, to, from, count);
  } else {
    combine_as<double>(how, to, from, count);
  }
}

/// Takes elements into sums in double precision, with Combine::replace, or adds them to what is
/// there, with Combine::sum.
void widen(Combine how, ElementType type, double* sums, const void* values, std::size_t count) {
  const bool is_first = how == Combine::replace;
  if (type == ElementType::f32) {
    widen_as<float>(is_first, sums, values, count);
  } else {
    widen_as<double>(is_first, sums, values, count);
  }
}

/// Rounds such sums to elements.
void narrow(ElementType type, void* elements, const double* sums, std::size_t count) {
  if (type == ElementType::f32) {
    narrow_as<float>(elements, sums, count);
  } else {
    narrow_as<double>(elements, sums, count);
  }
}

void combine_tiles(Combine how, ElementType type, std::span<const void* const> inputs, void* out,
                   std::size_t count, bool wide) {
  constexpr std::size_t step = 1024;  // elements: within the first-level cache
  const Scratch scratch;
  auto* const tile = static_cast<unsigned char*>(scratch.data());
  static_assert(step * sizeof(double) <= Scratch::bytes);
  const std::size_t width = element_size(type);
  const bool widens = wide && how == Combine::sum && type == ElementType::f32;
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t elements = std::min(step, count - first);
    auto* const to = static_cast<unsigned char*>(out) + first * width;
    Combine next = Combine::replace;
    for (const void* input : inputs) {
      const auto* from = static_cast<const unsigned char*>(input) + first * width;
      if (widens) {
        widen(next, type, reinterpret_cast<double*>(tile), from, elements);
      } else {
        combine_some(next, type, tile, from, elements);
      }
      next = how;
    }
    if (widens) {
      narrow(type, to, reinterpret_cast<const double*>(tile), elements);
    } else {
      std::memcpy(to, tile, elements * width);
    }
  }
}

}  // namespace

void combine_elements(Combine how, ElementType type, void* have, const void* values,
                      std::size_t count) {
  if (how == Combine::replace) {
    std::memcpy(have, values, count * element_size(type));
  } else {
    compute(FloatModes::of_thread(), [&] { combine_some(how, type, have, values, count); });
  }
}

void combine_all(Combine how, ElementType type, std::span<const void* const> inputs, void* out,
                 std::size_t count, bool wide, FloatModes modes) {
  compute(modes, [&] { combine_tiles(how, type, inputs, out, count, wide); });
}

}  // namespace mpress::codec
