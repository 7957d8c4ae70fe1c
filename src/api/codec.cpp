// include/mpress/codec.h: the codecs of the host. Part of libmpress.so itself, as they need no MPI.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "api/codec_arguments.hpp"
#include "codec/codec.hpp"
#include "codec/szp/format.hpp"

namespace mpress::api {
namespace {

static_assert(MPRESS_F32 == static_cast<int>(ElementType::f32) &&
              MPRESS_F64 == static_cast<int>(ElementType::f64));
static_assert(MPRESS_REPLACE == static_cast<int>(codec::Combine::replace) &&
              MPRESS_SUM == static_cast<int>(codec::Combine::sum) &&
              MPRESS_MIN == static_cast<int>(codec::Combine::min) &&
              MPRESS_MAX == static_cast<int>(codec::Combine::max) &&
              MPRESS_PROD == static_cast<int>(codec::Combine::prod));

thread_local std::string last_error;

std::size_t raw_bytes(mpress_element type, std::size_t count) {
  return count * element_size(static_cast<ElementType>(type));
}

void tell(mpress_encoded* encoded, std::size_t bytes, double bound, const std::string& spec) {
  *encoded = {};
  encoded->bytes = bytes;
  encoded->bound = bound;
  std::snprintf(encoded->spec, sizeof encoded->spec, "%s", spec.c_str());
}

/// What decodes what `spec` encodes: all of it that a payload does not hold itself.
std::string decoding_spec(const Spec& spec) {
  if (spec.codec == Codec::mpc) return "mpc";
  return to_string(spec);
}

/// As read(), of what decodes a payload.
std::string read_decoding(const char* text, mpress_element type, Spec& spec) {
  const std::string problem = read(text, type, spec);
  if (!problem.empty() || spec.codec != Codec::automatic) return problem;
  return "spec: 'auto' decodes nothing; expected that of mpress_encoded";
}

/// `of_szp`: where it is szp's.
double bound_of(Codec codec, double of_szp) {
  if (codec == Codec::zfp) return std::numeric_limits<double>::quiet_NaN();
  return codec == Codec::szp ? of_szp : 0;
}

}  // namespace

mpress_codec_status fail(mpress_codec_status status, std::string text) {
  last_error = "mpress: " + std::move(text);
  return status;
}

mpress_codec_status wrong(std::string text) { return fail(MPRESS_CODEC_ARGUMENT, std::move(text)); }

std::string read(const char* text, mpress_element type, Spec& spec) {
  if (type != MPRESS_F32 && type != MPRESS_F64) {
    return "type is " + std::to_string(type) + "; expected MPRESS_F32 or MPRESS_F64";
  }
  if (!text) return "spec is null; expected a codec";
  std::string error;
  if (!parse_spec(text, spec, error)) return "spec: " + error;
  if (spec.codec == Codec::none || spec.codec == Codec::automatic) return {};
  return validate_spec(spec, static_cast<ElementType>(type), error) ? "" : "spec: " + error;
}

bool is_countable(mpress_element type, std::size_t count) {
  return count <= std::numeric_limits<std::size_t>::max() / 16 &&
         raw_bytes(type, count) <= static_cast<std::size_t>(PTRDIFF_MAX) / 2;
}

std::size_t room_for(const Spec& spec, mpress_element type, std::size_t count) {
  const std::size_t raw = raw_bytes(type, count);
  if (spec.codec == Codec::none) return raw;
  const Spec used = spec.codec == Codec::automatic ? Spec{.codec = Codec::mpc} : spec;
  return std::max(raw, codec::max_payload_bytes(used, static_cast<ElementType>(type), count));
}

mpress_codec_status too_little_room(std::size_t room, std::size_t needed) {
  return fail(MPRESS_CODEC_ROOM, "room is " + std::to_string(room) + " bytes; expected " +
                                     std::to_string(needed) +
                                     ", as mpress_max_payload_bytes() says");
}

mpress_codec_status status_of(codec::Status status) {
  switch (status) {
    case codec::Status::ok: return MPRESS_CODEC_OK;
    case codec::Status::mismatched: return fail(MPRESS_CODEC_MISMATCHED, status_text(status));
    case codec::Status::inexact: return fail(MPRESS_CODEC_INEXACT, status_text(status));
    default: return fail(MPRESS_CODEC_CORRUPT, status_text(status));
  }
}

}  // namespace mpress::api

using namespace mpress;
using namespace mpress::api;

MPRESS_PUBLIC const char* mpress_codec_error_text() { return last_error.c_str(); }

MPRESS_PUBLIC const char* mpress_codec_problem(const char* text, mpress_element type) {
  Spec spec;
  const std::string problem = read(text, type, spec);
  if (problem.empty()) return nullptr;
  wrong(problem);
  return last_error.c_str();
}

MPRESS_PUBLIC size_t mpress_max_payload_bytes(const char* text, mpress_element type, size_t count) {
  Spec spec;
  const std::string problem = read(text, type, spec);
  if (problem.empty() && is_countable(type, count)) return room_for(spec, type, count);
  wrong(problem.empty() ? "count is too large" : problem);
  return 0;
}

MPRESS_PUBLIC mpress_codec_status mpress_encode(const char* text, mpress_element type,
                                                const void* elements, size_t count, void* payload,
                                                size_t room, mpress_encoded* encoded) {
  Spec spec;
  const std::string problem = read(text, type, spec);
  if (!problem.empty()) return wrong(problem);
  if (!is_countable(type, count)) return wrong("count is too large");
  if (count > 0 && !elements) return wrong("elements is null; expected an array");
  if (!payload && room > 0) return wrong("payload is null; expected room for one");
  if (!encoded) return wrong("encoded is null; expected where to tell what was encoded");
  const std::size_t raw = raw_bytes(type, count);
  const std::size_t needed = room_for(spec, type, count);
  if (room < needed) return too_little_room(room, needed);
  const auto element = static_cast<ElementType>(type);
  const bool is_automatic = spec.codec == Codec::automatic;
  if (is_automatic) spec = Spec{.codec = Codec::mpc};
  if (spec.codec != Codec::none) {
    const Spec used = codec::resolve(spec, element, elements, count);
    const std::size_t bytes = codec::encode(used, element, elements, count, payload);
    if (!is_automatic || bytes < raw) {
      tell(encoded, bytes, bound_of(spec.codec, used.value), decoding_spec(used));
      return MPRESS_CODEC_OK;
    }
  }
  if (raw > 0) std::memcpy(payload, elements, raw);
  tell(encoded, raw, 0, "none");
  return MPRESS_CODEC_OK;
}

MPRESS_PUBLIC mpress_codec_status mpress_decode(const char* text, mpress_element type,
                                                const void* payload, size_t bytes, void* elements,
                                                size_t count, mpress_combine how) {
  Spec spec;
  const std::string problem = read_decoding(text, type, spec);
  if (!problem.empty()) return wrong(problem);
  if (!is_countable(type, count)) return wrong("count is too large");
  if (count > 0 && !elements) return wrong("elements is null; expected room for them");
  if (bytes > 0 && !payload) return wrong("payload is null; expected one");
  if (how < MPRESS_REPLACE || how > MPRESS_PROD) {
    return wrong("how is " + std::to_string(how) +
                 "; expected MPRESS_REPLACE, _SUM, _MIN, _MAX or _PROD");
  }
  const auto element = static_cast<ElementType>(type);
  const auto combine = static_cast<codec::Combine>(how);
  if (spec.codec != Codec::none) {
    return status_of(codec::decode(spec, element, payload, bytes, elements, count, combine));
  }
  if (bytes != raw_bytes(type, count)) return fail(MPRESS_CODEC_CORRUPT, "payload is truncated");
  if (combine == codec::Combine::replace) {
    if (bytes > 0) std::memcpy(elements, payload, bytes);
  } else {
    codec::combine_elements(combine, element, elements, payload, count);
  }
  return MPRESS_CODEC_OK;
}

MPRESS_PUBLIC mpress_codec_status mpress_payload_bound(const char* text, mpress_element type,
                                                       const void* payload, size_t bytes,
                                                       double* bound) {
  Spec spec;
  const std::string problem = read_decoding(text, type, spec);
  if (!problem.empty()) return wrong(problem);
  if (bytes > 0 && !payload) return wrong("payload is null; expected one");
  if (!bound) return wrong("bound is null; expected where to tell it");
  if (spec.codec == Codec::szp && bytes < sizeof(codec::szp::Header)) {
    return fail(MPRESS_CODEC_CORRUPT, "payload is truncated");
  }
  *bound = bound_of(spec.codec, codec::told_bound(spec, payload, bytes));
  return MPRESS_CODEC_OK;
}

MPRESS_PUBLIC mpress_codec_status mpress_add(mpress_element type, const mpress_payload* payloads,
                                             int number, size_t count, void* sum, size_t room,
                                             mpress_encoded* encoded) {
  if (type != MPRESS_F32 && type != MPRESS_F64) {
    return wrong("type is " + std::to_string(type) + "; expected MPRESS_F32 or MPRESS_F64");
  }
  std::array<codec::Summand, codec::most_summands> summands;
  if (number < 2 || number > static_cast<int>(summands.size())) {
    return wrong("number is " + std::to_string(number) + "; expected 2 to " +
                 std::to_string(summands.size()) + " payloads");
  }
  if (!payloads) return wrong("payloads is null; expected an array of them");
  if (!sum) return wrong("sum is null; expected room for a payload");
  if (!encoded) return wrong("encoded is null; expected where to tell what was encoded");
  if (!is_countable(type, count)) return wrong("count is too large");
  const auto element = static_cast<ElementType>(type);
  const std::size_t needed = codec::szp::max_bytes(element, count);
  if (room < needed) return too_little_room(room, needed);
  for (int i = 0; i < number; ++i) {
    if (!payloads[i].data) return wrong("payloads[" + std::to_string(i) + "].data is null");
    summands[static_cast<std::size_t>(i)] = {payloads[i].data, payloads[i].bytes};
  }
  std::size_t bytes = 0;
  const codec::Status status = codec::szp::add(
      element, {summands.data(), static_cast<std::size_t>(number)}, count, sum, bytes);
  if (status != codec::Status::ok) return status_of(status);
  codec::szp::Header header;
  std::memcpy(&header, sum, sizeof header);
  Spec spec{.codec = Codec::szp, .bound = Bound::abs};
  spec.value = header.bound;
  tell(encoded, bytes, header.bound, to_string(spec));
  return MPRESS_CODEC_OK;
}
