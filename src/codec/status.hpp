// What a codec reports. Codecs never throw and never abort.
#pragma once

#include <cstdint>

namespace mpress::codec {

enum class Status : std::uint8_t {
  ok = 0,
  truncated,    ///< the payload ends before the format says it does
  corrupt,      ///< the payload contradicts itself, its checksum or the element count
  unsupported,  ///< a format version or mode this build does not know
  mismatched,   ///< two payloads that are to be combined were not quantised alike
  inexact,      ///< the sum cannot be kept in quanta: add the elements instead
};

constexpr const char* status_text(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::truncated: return "payload is truncated";
    case Status::corrupt: return "payload is corrupt";
    case Status::unsupported: return "payload has an unknown format version";
    case Status::mismatched: return "payloads were quantised with different steps";
    case Status::inexact: return "the sum cannot be kept in quanta";
  }
  return "unknown status";
}

}  // namespace mpress::codec
