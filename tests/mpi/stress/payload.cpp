#include "payload.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "floats.hpp"
#include "random.hpp"

namespace stress {
namespace {

template <typename T>
T special_value(std::uint64_t choice) {
  using Limits = std::numeric_limits<T>;
  switch (choice % 8) {
    case 0: return Limits::quiet_NaN();
    case 1: return Limits::infinity();
    case 2: return -Limits::infinity();
    case 3: return Limits::denorm_min() * static_cast<T>(choice >> 56);
    case 4: return static_cast<T>(-0.0);
    case 5: return Limits::max();
    default: return static_cast<T>(1.5);
  }
}

template <typename T>
[[gnu::noinline]] void fill_floats(T* out, std::size_t n, std::uint64_t key, Data data) {
  const auto base = static_cast<double>(key % 1000) - 500.0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<double>(i);
    switch (data) {
      case Data::smooth: out[i] = static_cast<T>(base + at * 0.0009765625); break;
      case Data::constant: out[i] = static_cast<T>(base); break;
      case Data::steps: out[i] = static_cast<T>(base + static_cast<double>(i / 37)); break;
      case Data::sparse: out[i] = i % 53 == key % 53 ? static_cast<T>(base) : T{0}; break;
      case Data::special: out[i] = special_value<T>(mix(key, i)); break;
      default: {
        const std::uint64_t bits = mix(key, i);
        std::memcpy(&out[i], &bits, sizeof(T));
      }
    }
  }
}

template <typename T>
void fill_integers(T* out, std::size_t n, std::uint64_t key, Data data) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool noise = data == Data::noise || data == Data::special;
    out[i] = static_cast<T>(noise ? mix(key, i) : key + i / 3);
  }
}

}  // namespace

const char* name_of(Data data) {
  static const char* const names[] = {"smooth", "constant", "steps", "sparse", "noise", "special"};
  return names[static_cast<int>(data)];
}

std::vector<std::byte> make_content(std::uint64_t key, Element element, Data data,
                                    std::size_t elements) {
  const std::size_t bytes = elements * element_bytes(element);
  std::vector<std::byte> content(bytes);
  void* out = content.data();
  const UsualFloats usual;
  switch (element) {
    case Element::f32:
    case Element::c32:
    case Element::mixed:
      fill_floats(static_cast<float*>(out), bytes / sizeof(float), key, data);
      break;
    case Element::f64:
    case Element::c64:
      fill_floats(static_cast<double*>(out), bytes / sizeof(double), key, data);
      break;
    case Element::i64: fill_integers(static_cast<std::uint64_t*>(out), elements, key, data); break;
    case Element::i32: fill_integers(static_cast<std::uint32_t*>(out), elements, key, data); break;
    default: fill_integers(static_cast<std::uint8_t*>(out), elements, key, data);
  }
  if (bytes >= sizeof key) std::memcpy(content.data(), &key, sizeof key);
  return content;
}

std::uint64_t key_in(const std::byte* content, std::size_t bytes) {
  std::uint64_t key = 0;
  if (bytes >= sizeof key) std::memcpy(&key, content, sizeof key);
  return key;
}

}  // namespace stress
