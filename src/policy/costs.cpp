#include "policy/costs.hpp"

#include <algorithm>

namespace mpress::policy {

std::optional<CodecSeconds> Costs::codec_seconds(Path path, Codec codec, double bytes) const {
  const CodecTimes& times =
      codecs[static_cast<std::size_t>(codec)][static_cast<std::size_t>(path.place)];
  if (!times.encode) return std::nullopt;
  const auto chunk = static_cast<double>(device_chunk);
  const bool is_cut = path.place == Place::device && chunk > 0 && bytes >= 2 * chunk;
  const double piece = is_cut ? chunk : bytes;
  const double encode = times.encode.at(piece);
  const double decode = times.decode.at(piece);
  return CodecSeconds{bytes / piece * encode, bytes / piece * decode, encode, decode};
}

double compressed_seconds(const Curve& frame, const CodecSeconds& codec, double wire_bytes) {
  const double rest = std::max(
      {frame.at(wire_bytes), codec.encode - codec.first_encode, codec.decode - codec.last_decode});
  return codec.first_encode + rest + codec.last_decode;
}

double Costs::compressed(Path path, const CodecSeconds& codec, double wire_bytes) const {
  constexpr double left_out = 15e-6;  // launches and looks of a message's own
  return compressed_seconds(frame(path), codec, wire_bytes) +
         (path.place == Place::device ? left_out : 0);
}

Costs default_costs() {
  constexpr auto device = static_cast<std::size_t>(Place::device);
  Costs costs;
  for (auto& places : costs.messages) places[device] = Curve::line(20e-6, 10e9);
  for (const Codec codec : {Codec::mpc, Codec::zfp, Codec::szp}) {
    costs.codecs[static_cast<std::size_t>(codec)][device] = {Curve::line(20e-6, 500e9),
                                                             Curve::line(15e-6, 500e9)};
  }
  return costs;
}

void costs_of(const Profile& profile, const std::string& mpi, const Transports& transports,
              Costs& costs) {
  for (std::size_t peer = 0; peer < peer_count; ++peer) {
    for (std::size_t place = 0; place < place_count; ++place) {
      const Profile::Link* link =
          profile.find(static_cast<Peer>(peer), static_cast<Place>(place), mpi, transports[place]);
      if (link) costs.messages[peer][place] = link->message;
    }
  }
  for (std::size_t codec = 0; codec < codec_count; ++codec) {
    for (std::size_t place = 0; place < place_count; ++place) {
      const CodecTimes& measured = profile.codecs[codec][place];
      if (measured.encode && measured.decode) costs.codecs[codec][place] = measured;
    }
  }
}

}  // namespace mpress::policy
