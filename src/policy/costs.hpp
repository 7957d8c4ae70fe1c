// The cost model: how long a message takes raw, and how long compressed. T = Ts + Tc + S/(CR B) +
// Td of the papers (IPDPS'21, section IV), extended by the overlap of chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/spec.hpp"
#include "policy/curve.hpp"
#include "policy/profile.hpp"

namespace mpress::policy {

/// Where a message lies and where it goes, as far as costs depend on that.
struct Path {
  Place place = Place::host;
  Peer peer = Peer::other_host;
};

/// Of memory of devices, by a link of the list: which one; null: by MPI.
constexpr const link::Attributes* own_link(Path path) {
  return path.place == Place::device && has_own_link(path.peer) ? &attributes_of(path.peer)
                                                                : nullptr;
}

/// Messages whose costs are measured, or assumed, together: in memory of the host, in that of
/// devices by MPI, and by each link of the list.
enum class Medium : std::uint8_t { host, device };

inline constexpr std::size_t medium_count = 2 + link::count_between_devices;

constexpr Medium medium(Path path) {
  if (own_link(path)) return static_cast<Medium>(path.peer);
  return path.place == Place::host ? Medium::host : Medium::device;
}

/// Do its devices reach each other's memory?
constexpr bool is_linked(Path path) {
  return path.place == Place::device && path.peer == Peer::linked;
}

/// Null for those that are MPI's.
constexpr const link::Attributes* own_link(Medium medium) {
  return own_link(Path{Place::device, static_cast<Peer>(medium)});
}

/// What encoding and decoding a message take, and what doing so for its first chunk takes; all of a
/// message where it goes in one piece.
struct CodecSeconds {
  double encode = 0;
  double decode = 0;
  double first_encode = 0;
  double last_decode = 0;
};

/// Bytes in a chunk of a message in memory of a device, by where it goes; 0: in one piece.
using DeviceChunks = std::array<std::size_t, peer_count>;

/// What messages and codecs cost this process. A curve that knows nothing stands for a time that
/// nobody has measured.
struct Costs {
  std::array<std::array<Curve, place_count>, peer_count> messages;
  AllCodecTimes codecs;
  /// On devices, messages of two chunks and more are cut, of so many bytes for each peer (by own
  /// links as policy/chunks tells); on the host, the same processor encodes, sends and decodes, and
  /// nothing is taken to overlap.
  DeviceChunks device_chunks{};
  /// MPI takes memory of devices: raw messages that an own link could carry are MPI's, unless that
  /// is known to be slower.
  bool raw_is_mpis = false;
  /// MPI does, but frames leave from the host's memory.
  bool frames_leave_host = false;
  /// Messages on devices of this kind of peer cost what nobody has measured: a link of the host's
  /// that is slower counts in their place, and between linked devices, of which nothing is assumed,
  /// what is learned.
  std::array<bool, peer_count> assumed{};
  /// So are these codecs' times on devices.
  std::array<bool, codec_count> assumed_codecs{};
  /// By how much longer a rank's messages take to several others at once than one after another;
  /// 0: not measured.
  std::array<std::array<double, place_count>, peer_count> crowded{};
  /// Seconds a byte of elements that encoding and decoding take in host memory at the least, by
  /// codec; 0: not known. They count where no profile tells the times of codecs.
  std::array<double, codec_count> least_host_seconds{};

  const Curve& message(Path path) const {
    return messages[index(path.peer)][static_cast<std::size_t>(path.place)];
  }
  double crowding(Path path) const {
    return crowded[index(path.peer)][static_cast<std::size_t>(path.place)];
  }
  /// Where a raw message of an own link's path goes by MPI, that takes: what; else null.
  const Curve* raw_by_mpi(Path path, double bytes) const;
  /// What a frame takes, by its size.
  const Curve& frame(Path path) const {
    if (medium(path) != Medium::device || !frames_leave_host) return message(path);
    const Curve& host = message({Place::host, path.peer});
    return host ? host : message(path);
  }

  /// Seconds of a message that becomes `wire_bytes`.
  double compressed(Path path, const CodecSeconds& codec, double wire_bytes) const {
    return compressed(path, frame(path), codec, wire_bytes);
  }
  /// The same where frames take what `frame` tells.
  double compressed(Path path, const Curve& frame, const CodecSeconds& codec,
                    double wire_bytes) const;

  /// Empty where the codec's times were never measured.
  std::optional<CodecSeconds> codec_seconds(Path path, Codec codec, double bytes) const {
    return codec_seconds(path, times_of(codec, path.place), bytes);
  }
  std::optional<CodecSeconds> codec_seconds(Path path, const CodecTimes& times, double bytes) const;
  const CodecTimes& times_of(Codec codec, Place place) const {
    return codecs[static_cast<std::size_t>(codec)][static_cast<std::size_t>(place)];
  }
};

/// Of the raw message's time: what a compressed one may take to begin with, and what it may take to
/// go on. The errors of the model, and of a profile made at another time, are below these.
inline constexpr double clearly_faster = 0.90;
inline constexpr double faster = 0.95;

/// Seconds of a message that becomes a frame of `wire_bytes`. Encoding, the wire and decoding each
/// work on another chunk: the slowest of them counts in full, the others for one chunk.
/// `slowdown`: of what works at the same time.
double compressed_seconds(const Curve& frame, const CodecSeconds& codec, double wire_bytes,
                          double slowdown = 1);

/// What is assumed where nothing was measured: of devices, a link of 10 GB/s by MPI and, by a link
/// of the list, what its row says, and codecs as on a GPU of these years; of the host, nothing.
Costs default_costs();

/// By codec, of a device that computes at `speed` multiprocessors times GHz: as measured on an H200
/// (bench/results/codec-cuda-h200.json, turb: until the host sees the report), as much slower or
/// faster as the device is. Kernels of codecs are bound by instructions.
std::array<CodecTimes, codec_count> device_codec_times(double speed);
inline constexpr double speed_of_h200 = 132 * 1.98;

/// Which way an MPI's messages take, by the place of their data.
using Transports = std::array<std::string, place_count>;

/// Puts the costs, and the chunks, that a profile tells for this MPI and these transports in place
/// of others.
void costs_of(const Profile& profile, const std::string& mpi, const Transports& transports,
              Costs& costs);

}  // namespace mpress::policy
