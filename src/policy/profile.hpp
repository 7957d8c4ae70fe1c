// What `mpress tune` has measured on a machine. docs/tuning.md describes the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/spec.hpp"
#include "link/list.hpp"
#include "policy/curve.hpp"

namespace mpress::policy {

/// Where elements lie, on both sides of a message.
enum class Place : std::uint8_t { host, device, count_ };

/// How far away the other rank is. Behind other_host come the links of link/list.hpp, in its order:
/// data between devices goes by that link, whatever the MPI.
enum class Peer : std::uint8_t {
  same_host,
  other_host,
  linked = 2 + link::position(link::Kind::peer),  ///< GPUs reach each other's memory
};

inline constexpr std::size_t peer_count = 2 + link::count_between_devices;

constexpr std::size_t index(Peer peer) { return static_cast<std::size_t>(peer); }
constexpr bool has_own_link(Peer peer) { return peer > Peer::other_host; }
constexpr const link::Attributes& attributes_of(Peer own_link) {
  return link::between_devices[index(own_link) - 2];
}

/// `otherwise`: by the channel.
constexpr Peer peer_by(link::Kind kind, Peer otherwise = Peer::same_host) {
  return kind == link::Kind::channel ? otherwise : static_cast<Peer>(2 + link::position(kind));
}

inline constexpr std::size_t place_count = static_cast<std::size_t>(Place::count_);
inline constexpr std::array place_names{"host", "device"};
inline constexpr std::array peer_names = [] {
  std::array<const char*, peer_count> names{"same-host", "other-host"};
  for (std::size_t i = 2; i < peer_count; ++i) names[i] = link::between_devices[i - 2].profile;
  return names;
}();

/// mpc, zfp and szp are indexed by their values.
inline constexpr std::size_t codec_count = 4;

/// By the size of the elements.
struct CodecTimes {
  Curve encode;
  Curve decode;
};

inline constexpr std::array codec_names{"none", "mpc", "zfp", "szp"};

using AllCodecTimes = std::array<std::array<CodecTimes, place_count>, codec_count>;

struct Profile {
  /// Raw messages between two ranks, by size; on devices, as MPI has them, but by links of mpress's
  /// own. There only the header is MPI's, whichever that is.
  struct Link {
    Peer peer;
    Place place;
    std::string mpi;        ///< not of own links
    std::string transport;  ///< not of own links
    Curve message;
    /// Bytes in a chunk of a message between devices, the best found; 0: not measured.
    std::size_t chunk = 0;
    /// By how much longer a rank's messages take to several others at once than one after another;
    /// 0: not measured.
    double crowding = 0;
  };

  std::string date;
  std::string hardware;
  AllCodecTimes codecs;
  std::vector<Link> links;

  const Link* find(Peer peer, Place place, const std::string& mpi,
                   const std::string& transport) const;
};

/// Reads a profile's text. On failure returns false and one sentence that names the line and what
/// was expected.
bool parse_profile(std::string_view text, Profile& profile, std::string& error);

}  // namespace mpress::policy
