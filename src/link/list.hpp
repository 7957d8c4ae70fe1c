// The list of links between devices: what selection, prices, settings and reports know of each.
// A new link is a row here, a member of Links (core/links.hpp), and a folder of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mpress::link {

/// The values are part of the wire format: two bits of a header's route.
enum class Kind : std::uint8_t {
  channel,  ///< messages of a channel, under a tag of the transfer's own; reaches every rank
  peer,     ///< slots of the sender's segment, in memory that both GPUs reach
  host,     ///< slots of the sender's segment, in host memory that both GPUs have pinned
};

/// Costs of rounds of collective calls by a link, until a profile has them; as policy::LinkCosts.
struct Rounds {
  double seconds;  ///< of each, at least
  double rate;     ///< bytes a second, of one rank's transfer
  double crowding;
  double partner_share = 0.1;
  double passing_on = 1;
};

struct Attributes {
  Kind kind;
  const char* name;     ///< in MPRESS_LINK and in the report's JSON
  const char* profile;  ///< in profiles of `mpress tune`
  std::uint8_t way;     ///< trace::Way, of the record's format
  const char* text;     ///< the way, as reports print it
  const char* note;     ///< a line on it
  const char* phrase;   ///< where such messages go: "messages ..."
  /// Words for the messages that go by this link because the one before it failed.
  const char* as_other_way = nullptr;
  const char* protocol;

  /// Blocks pass through memory of the host: two copies over a bus that all its GPUs share, so
  /// that collective calls bound how many bytes are on their way.
  bool is_through_host = false;
  bool crosses_hosts = false;
  /// Slots are memory in which kernels of all members may work together: of a link::MemoryLink,
  /// which core/links.hpp sees to.
  bool is_memory = false;

  /// Until a profile tells, nothing is assumed of it: messages stay raw until LinkedRate has
  /// measured the link.
  bool is_measured = false;
  /// Else a message is assumed to take so many seconds beside its bytes, at so many a second.
  double message_seconds;
  double assumed_rate = 0;
  Rounds rounds;
  /// By how much encoders, decoders and copies slow each other down that work at once; 1 where the
  /// link is slower than they are.
  double overlap_slowdown = 1;
};

/// Each is faster than those behind it, wherever it reaches a rank.
inline constexpr std::array between_devices{
    // Seconds: two H200s, 64 KB to 256 MB; slowdown: four codecs and fields of 256 MB there. The
    // rest: 4 H100s with MPICH, 1 to 64 MB a pair: all at once 50 us and 262 GB/s, one after
    // another 41 and 333; and a chain of segments took twice as long as its copies.
    Attributes{.kind = Kind::peer,
               .name = "peer",
               .profile = "linked",
               .way = 2,
               .text = "GPU to GPU",
               .note = "through memory that both GPUs reach",
               .phrase = "from GPU to GPU",
               .protocol = "pipelined, GPU to GPU",
               .is_memory = true,
               .is_measured = true,
               .message_seconds = 15e-6,
               .rounds = {.seconds = 16e-6,
                          .rate = 330e9,
                          .crowding = 1.27,
                          .partner_share = 1,
                          .passing_on = 2},
               .overlap_slowdown = 1.3},
    // As fast as a bus may be: where it is slower, compression begins later than it could.
    // Crowding: 4 H100s, 1 to 64 MB a pair, in windows (policy/chunks.hpp).
    Attributes{.kind = Kind::host,
               .name = "host",
               .profile = "pinned",
               .way = 4,
               .text = "host memory of both GPUs",
               .note = "through host memory that both processes map and both GPUs have pinned",
               .phrase = "between GPUs by host memory",
               .as_other_way = "by way of the host's memory",
               .protocol = "pipelined, pinned host memory",
               .is_through_host = true,
               .is_memory = true,
               .message_seconds = 20e-6,
               .assumed_rate = 50e9,
               .rounds = {.seconds = 20e-6, .rate = 25e9, .crowding = 1.15}},
};

inline constexpr std::size_t count_between_devices = between_devices.size();

/// The position of a link in the list; of the channel, behind all.
constexpr std::size_t position(Kind kind) {
  std::size_t at = 0;
  while (at < between_devices.size() && between_devices[at].kind != kind) ++at;
  return at;
}

constexpr Kind kind_at(std::size_t position) {
  return position < between_devices.size() ? between_devices[position].kind : Kind::channel;
}

/// Null where none is called so.
constexpr const Attributes* named(std::string_view name) {
  for (const Attributes& one : between_devices) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

/// Null for the channel.
constexpr const Attributes* attributes_of(Kind kind) {
  const std::size_t at = position(kind);
  return at < between_devices.size() ? &between_devices[at] : nullptr;
}

}  // namespace mpress::link
