#include "codec/spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "codec/float_environment.hpp"

namespace mpress {
namespace {

constexpr double min_zfp_rate = 2.25;  // f32: 9 bits of block header / 4 values

bool fail(std::string& error, std::string_view spec, const std::string& why) {
  error = "codec spec '" + std::string(spec) + "': " + why;
  return false;
}

bool parse_number(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  return code == std::errc{} && stop == end;
}

/// Splits off the text up to `separator`; `rest` becomes what follows it.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return head;
}

bool parse_mpc(std::string_view text, std::string_view options, Spec& spec, std::string& error) {
  std::string_view value = options;
  const std::string_view key = take(value, '=');
  double dim = 0;
  if (key != "dim") return fail(error, text, "mpc takes 'dim=N', not '" + std::string(key) + "'");
  if (!parse_number(value, dim) || dim < 1 || dim > 32 || dim != std::floor(dim)) {
    return fail(error, text,
                "dim must be a whole number from 1 to 32, not '" + std::string(value) + "'");
  }
  spec.dim = static_cast<std::uint8_t>(dim);
  return true;
}

bool parse_zfp(std::string_view text, std::string_view options, Spec& spec, std::string& error) {
  if (!parse_number(options, spec.value) || !(spec.value >= min_zfp_rate && spec.value <= 64)) {
    return fail(error, text,
                "zfp needs a rate in bits a value (2.25 to 32 for f32, 3 to 64 for f64), not '" +
                    std::string(options) + "'");
  }
  return true;
}

bool parse_szp(std::string_view text, std::string_view options, Spec& spec, std::string& error) {
  bool mode_seen = false;
  if (options.ends_with(',')) return fail(error, text, "nothing follows the ','");
  while (!options.empty()) {
    std::string_view value = take(options, ',');
    const std::string_view key = take(value, '=');
    if ((key == "abs" || key == "rel") && spec.bound == Bound::none) {
      spec.bound = key == "abs" ? Bound::abs : Bound::rel;
      if (!parse_number(value, spec.value) || !(spec.value > 0) || !std::isfinite(spec.value)) {
        return fail(error, text,
                    "the bound must be a positive finite number, not '" + std::string(value) + "'");
      }
    } else if (key == "mode" && !mode_seen && (value == "fast" || value == "dense")) {
      mode_seen = true;
      spec.mode = value == "fast" ? Mode::fast : Mode::dense;
    } else if (key == "mode" && !mode_seen) {
      return fail(error, text, "mode must be fast or dense, not '" + std::string(value) + "'");
    } else {
      return fail(error, text,
                  "szp takes one of 'abs=E', 'rel=E' and optionally 'mode=fast|dense'; '" +
                      std::string(key) + "' is not expected");
    }
  }
  if (spec.bound == Bound::none) {
    return fail(error, text, "szp needs a bound: 'szp:abs=E' or 'szp:rel=E'");
  }
  return true;
}

bool parse(std::string_view text, Spec& spec, std::string& error) {
  std::string_view options = text;
  const std::string_view name = take(options, ':');
  const bool bare = name.size() == text.size();
  if (!bare && options.empty()) return fail(error, text, "nothing follows the ':'");
  Spec parsed;
  if (name == "none" || name == "auto") {
    if (!bare) return fail(error, text, "'" + std::string(name) + "' takes no options");
    parsed.codec = name == "none" ? Codec::none : Codec::automatic;
  } else if (name == "mpc") {
    parsed.codec = Codec::mpc;
    if (!bare && !parse_mpc(text, options, parsed, error)) return false;
  } else if (name == "zfp") {
    parsed.codec = Codec::zfp;
    if (!parse_zfp(text, options, parsed, error)) return false;
  } else if (name == "szp") {
    parsed.codec = Codec::szp;
    if (!parse_szp(text, options, parsed, error)) return false;
  } else {
    return fail(error, text,
                "unknown codec '" + std::string(name) +
                    "'; expected none, auto, mpc, zfp:RATE, szp:abs=E or szp:rel=E");
  }
  spec = parsed;
  return true;
}

}  // namespace

bool parse_spec(std::string_view text, Spec& spec, std::string& error) {
  return compute([&] { return parse(text, spec, error); });
}

bool validate_spec(const Spec& spec, ElementType type, std::string& error) {
  if (spec.codec != Codec::zfp) return true;
  const double lowest = type == ElementType::f32 ? min_zfp_rate : 3;
  const double highest = type == ElementType::f32 ? 32 : 64;
  const bool is_within = compute([&] { return spec.value >= lowest && spec.value <= highest; });
  if (is_within) return true;
  return fail(error, to_string(spec),
              std::string("the rate for ") + element_name(type) + " must be from " +
                  number_text(lowest) + " to " + number_text(highest) + " bits a value");
}

std::string number_text(double value) {
  char buffer[40];
  const auto write = [&] { return std::to_chars(buffer, buffer + sizeof buffer, value).ptr; };
  return std::string(buffer, compute(write));
}

std::string to_string(const Spec& spec) {
  const char* mode = spec.mode == Mode::dense ? ",mode=dense" : "";
  switch (spec.codec) {
    case Codec::none: return "none";
    case Codec::automatic: return "auto";
    case Codec::mpc: return spec.dim == 0 ? "mpc" : "mpc:dim=" + std::to_string(spec.dim);
    case Codec::zfp: return "zfp:" + number_text(spec.value);
    case Codec::szp:
      return (spec.bound == Bound::rel ? "szp:rel=" : "szp:abs=") + number_text(spec.value) + mode;
  }
  return "none";
}

std::uint32_t zfp_block_bits(double rate, ElementType type) {
  const std::uint32_t header_bits = type == ElementType::f32 ? 9 : 12;
  const auto bits = [&] { return static_cast<std::uint32_t>(std::floor(4 * rate + 0.5)); };
  return std::max(compute(bits), header_bits);
}

}  // namespace mpress
