// What `mpress tune` has measured on a machine. docs/tuning.md describes the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/spec.hpp"
#include "policy/curve.hpp"

namespace mpress::policy {

/// Where elements lie, on both sides of a message.
enum class Place : std::uint8_t { host, device, count_ };

/// How far away the other rank is.
enum class Peer : std::uint8_t {
  same_host,
  other_host,
  linked,  ///< of this host, and the GPUs reach each other's memory
  pinned,  ///< of this host, and data goes by host memory that both GPUs have pinned
  count_
};

/// Does data between devices of such ranks go by a link of mpress's, whatever the MPI?
constexpr bool has_own_link(Peer peer) { return peer == Peer::linked || peer == Peer::pinned; }

inline constexpr const char* place_names[] = {"host", "device"};
inline constexpr const char* peer_names[] = {"same-host", "other-host", "linked", "pinned"};
inline constexpr std::size_t place_count = static_cast<std::size_t>(Place::count_);
inline constexpr std::size_t peer_count = static_cast<std::size_t>(Peer::count_);

/// mpc, zfp and szp are indexed by their values.
inline constexpr std::size_t codec_count = 4;

/// By the size of the elements.
struct CodecTimes {
  Curve encode;
  Curve decode;
};

inline constexpr const char* codec_names[] = {"none", "mpc", "zfp", "szp"};

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
