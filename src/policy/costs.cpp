#include "policy/costs.hpp"

#include <algorithm>
#include <utility>

#include "codec/float_environment.hpp"
#include "policy/chunks.hpp"

namespace mpress::policy {
namespace {

constexpr double left_out = 15e-6;  // launches and looks of a message's own
constexpr double launch = 12e-6;    // of a codec, as the shortest message takes it on an H200
constexpr double gap = 4e-6;        // from one chunk to the next of those that a queue has queued

/// Bytes of a message's first chunk; all of them where it goes in one piece.
double first_piece(Path path, double bytes, std::size_t chunk) {
  if (path.place == Place::host || chunk == 0 || bytes < 2 * static_cast<double>(chunk)) {
    return bytes;
  }
  const link::Attributes* const link = own_link(path);
  return static_cast<double>(link ? encoded_chunk(*link, static_cast<std::size_t>(bytes), chunk)
                                  : chunk);
}

Costs usual_costs() {
  constexpr auto device = static_cast<std::size_t>(Place::device);
  Costs costs;
  for (const Peer peer : {Peer::same_host, Peer::other_host}) {
    costs.messages[index(peer)][device] = Curve::line(20e-6, 10e9);
    costs.assumed[index(peer)] = true;
  }
  for (const link::Attributes& link : link::between_devices) {
    const std::size_t peer = index(peer_by(link.kind));
    costs.assumed[peer] = link.is_measured;  // no curve: the rate that is learned counts
    if (link.is_measured) continue;
    costs.messages[peer][device] = Curve::line(link.message_seconds, link.assumed_rate);
  }
  for (const Codec codec : {Codec::mpc, Codec::zfp, Codec::szp}) {
    costs.codecs[static_cast<std::size_t>(codec)][device] = {Curve::line(20e-6, 500e9),
                                                             Curve::line(15e-6, 500e9)};
    costs.assumed_codecs[static_cast<std::size_t>(codec)] = true;
  }
  return costs;
}

}  // namespace

const Curve* Costs::raw_by_mpi(Path path, double bytes) const {
  if (!raw_is_mpis || !own_link(path)) return nullptr;
  const Curve& by_mpi = message({Place::device, Peer::same_host});
  const Curve& by_link = message(path);
  const bool is_slower = by_mpi && by_link && by_link.at(bytes) < faster * by_mpi.at(bytes);
  return by_mpi && !is_slower ? &by_mpi : nullptr;
}

std::optional<CodecSeconds> Costs::codec_seconds(Path path, const CodecTimes& times,
                                                 double bytes) const {
  if (!times.encode) return std::nullopt;
  const double piece = first_piece(path, bytes, device_chunks[index(path.peer)]);
  const double encode = times.encode.at(piece);
  const double decode = times.decode.at(piece);
  const double pieces = bytes / piece;
  if (!own_link(path)) {
    return CodecSeconds{pieces * encode, pieces * decode, encode, decode};
  }
  // All chunks are encoded in one go, and none is decoded later as the host sees to another.
  return CodecSeconds{times.encode.at(bytes), times.decode.at(bytes) + (pieces - 1) * gap, encode,
                      decode};
}

double compressed_seconds(const Curve& frame, const CodecSeconds& codec, double wire_bytes,
                          double slowdown) {
  const double rest = std::max(
      {frame.at(wire_bytes), codec.encode - codec.first_encode, codec.decode - codec.last_decode});
  return codec.first_encode + slowdown * rest + codec.last_decode;
}

double Costs::compressed(Path path, const Curve& frame, const CodecSeconds& codec,
                         double wire_bytes) const {
  const link::Attributes* const link = own_link(path);
  const double slowdown = link ? link->overlap_slowdown : 1;
  double seconds = compressed_seconds(frame, codec, wire_bytes, slowdown);
  // A GPU may send and receive at once, and raw messages both ways hardly disturb each other. Its
  // launches overlap with what works meanwhile.
  if (slowdown > 1) {
    const double working = codec.encode + codec.decode - 2 * launch;
    seconds = std::max(seconds, slowdown * working);
  }
  return seconds + (path.place == Place::device ? left_out : 0);
}

Costs default_costs() {
  return compute([] { return usual_costs(); });
}

std::array<CodecTimes, codec_count> device_codec_times(double speed) {
  // Microseconds of 64 KB, and of sizes four times as long as the one before.
  constexpr std::size_t sizes = 8;
  struct Measured {
    Codec codec;
    std::array<double, sizes> encode;
    std::array<double, sizes> decode;
  };
  constexpr Measured of_h200[] = {
      {Codec::mpc,
       {14.9, 14.9, 16.7, 20.9, 37.2, 93.5, 275.1, 990.9},
       {13.3, 13.5, 13.8, 17.0, 31.2, 77.9, 257.0, 969.3}},
      {Codec::zfp,
       {11.6, 11.4, 11.1, 13.6, 19.6, 45.0, 132.2, 468.8},
       {13.4, 12.8, 12.4, 15.5, 23.7, 55.1, 162.8, 580.0}},
      {Codec::szp,
       {13.8, 17.0, 13.9, 17.1, 28.2, 63.4, 203.6, 758.4},
       {13.7, 13.4, 15.8, 15.1, 21.5, 49.7, 129.5, 487.5}},
  };
  const auto curve = [speed](const std::array<double, sizes>& microseconds) {
    std::vector<Curve::Point> points;
    double bytes = 1 << 16;
    for (const double one : microseconds) {
      points.push_back({bytes, one * 1e-6 * speed_of_h200 / speed});
      bytes *= 4;
    }
    return Curve(std::move(points));
  };
  std::array<CodecTimes, codec_count> found;
  for (const Measured& one : of_h200) {
    found[static_cast<std::size_t>(one.codec)] = {curve(one.encode), curve(one.decode)};
  }
  return found;
}

void costs_of(const Profile& profile, const std::string& mpi, const Transports& transports,
              Costs& costs) {
  for (std::size_t peer = 0; peer < peer_count; ++peer) {
    for (std::size_t place = 0; place < place_count; ++place) {
      const Profile::Link* link =
          profile.find(static_cast<Peer>(peer), static_cast<Place>(place), mpi, transports[place]);
      if (!link) continue;
      costs.messages[peer][place] = link->message;
      if (static_cast<Place>(place) == Place::device) costs.assumed[peer] = false;
      costs.crowded[peer][place] = link->crowding;
      if (link->chunk > 0) costs.device_chunks[peer] = link->chunk;
    }
  }
  for (std::size_t codec = 0; codec < codec_count; ++codec) {
    for (std::size_t place = 0; place < place_count; ++place) {
      const CodecTimes& measured = profile.codecs[codec][place];
      if (!measured.encode || !measured.decode) continue;
      costs.codecs[codec][place] = measured;
      if (static_cast<Place>(place) == Place::device) costs.assumed_codecs[codec] = false;
    }
  }
}

}  // namespace mpress::policy
