// Numbers in the JSON of tables.
#pragma once

#include <charconv>
#include <string>

#include "codec/float_environment.hpp"

namespace mpress::engine {

/// Four digits, whatever the locale.
inline std::string json_number(double value) {
  char text[32];
  const auto end = compute([&] {
    return std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4).ptr;
  });
  return {text, end};
}

}  // namespace mpress::engine
