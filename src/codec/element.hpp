// Element types that codecs understand.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpress {

/// Floating-point element types. The values are part of the wire format.
enum class ElementType : std::uint8_t { f32 = 1, f64 = 2 };

constexpr std::size_t element_size(ElementType type) { return type == ElementType::f32 ? 4 : 8; }

constexpr const char* element_name(ElementType type) {
  return type == ElementType::f32 ? "f32" : "f64";
}

constexpr bool is_element_type(std::uint8_t value) { return value == 1 || value == 2; }

}  // namespace mpress
