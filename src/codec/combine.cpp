#include "codec/combine.hpp"

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
void combine_all(Combine how, unsigned char* have, const unsigned char* values, std::size_t count) {
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
    combine_all<float>(how, to, from, count);
  } else {
    combine_all<double>(how, to, from, count);
  }
}

}  // namespace mpress::codec
