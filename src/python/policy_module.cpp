// Profiles and the cost model, for `mpress tune`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codec/float_environment.hpp"
#include "config/machine.hpp"
#include "link/list.hpp"
#include "policy/costs.hpp"
#include "policy/profile.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

policy::Profile profile_of(const std::string& text) {
  policy::Profile profile;
  std::string error;
  if (!policy::parse_profile(text, profile, error)) throw nb::value_error(error.c_str());
  return profile;
}

template <std::size_t count>
std::size_t index_of(const std::string& text, const std::array<const char*, count>& names) {
  const auto found = std::ranges::find(names, std::string_view(text));
  if (found == names.end()) throw nb::value_error((text + ": no such name").c_str());
  return static_cast<std::size_t>(found - names.begin());
}

nb::dict points_of(const policy::Curve& curve) {
  nb::dict points;
  for (const auto [bytes, seconds] : curve.points()) points[nb::int_(bytes)] = seconds;
  return points;
}

nb::dict codec_times_of_h200() {
  const auto times = policy::device_codec_times(policy::speed_of_h200);
  nb::dict found;
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    if (!times[codec].encode) continue;
    found[policy::codec_names[codec]] =
        nb::make_tuple(points_of(times[codec].encode), points_of(times[codec].decode));
  }
  return found;
}

nb::dict read_profile(const std::string& text) {
  const policy::Profile profile = profile_of(text);
  nb::dict codecs;
  for (std::size_t codec = 0; codec < policy::codec_count; ++codec) {
    for (std::size_t place = 0; place < policy::place_count; ++place) {
      const policy::CodecTimes& times = profile.codecs[codec][place];
      if (!times.encode) continue;
      codecs[nb::make_tuple(policy::codec_names[codec], policy::place_names[place])] =
          nb::make_tuple(points_of(times.encode), points_of(times.decode));
    }
  }
  nb::list links;
  for (const policy::Profile::Link& link : profile.links) {
    links.append(nb::make_tuple(policy::peer_names[policy::index(link.peer)],
                                policy::place_names[static_cast<std::size_t>(link.place)], link.mpi,
                                link.transport, points_of(link.message), link.chunk,
                                link.crowding));
  }
  nb::dict found;
  found["hardware"] = profile.hardware;
  found["date"] = profile.date;
  found["codecs"] = codecs;
  found["links"] = links;
  return found;
}

std::optional<std::pair<double, double>> predict(const std::string& profile, const std::string& mpi,
                                                 const std::string& transport,
                                                 const std::string& peer, const std::string& place,
                                                 const std::string& spec, double nbytes,
                                                 double ratio, std::size_t chunk) {
  const policy::Path path{static_cast<policy::Place>(index_of(place, policy::place_names)),
                          static_cast<policy::Peer>(index_of(peer, policy::peer_names))};
  const policy::Profile known = profile_of(profile);
  policy::Costs costs = policy::default_costs();
  const std::string_view direct = "gpu-aware";
  std::string host = transport;
  if (transport.ends_with(direct)) {
    host.erase(transport.size() - direct.size());
    host.erase(host.find_last_not_of(' ') + 1);
  }
  costs.device_chunks.fill(chunk);
  policy::costs_of(known, mpi, {host, transport}, costs);
  const Codec wanted = parse(spec).codec;
  return compute([&]() -> std::optional<std::pair<double, double>> {
    const auto codec = costs.codec_seconds(path, wanted, nbytes);
    if (!known.find(path.peer, path.place, mpi, transport) || !codec) return std::nullopt;
    const policy::Curve& message = costs.message(path);
    return std::pair{policy::clearly_faster * message.at(nbytes),
                     costs.compressed(path, *codec, nbytes / ratio)};
  });
}

nb::list links_between_devices() {
  nb::list rows;
  for (const link::Attributes& row : link::between_devices) {
    rows.append(nb::make_tuple(row.name, row.profile, row.way, row.text, row.note, row.phrase));
  }
  return rows;
}

}  // namespace

void define_policy(nb::module_& m) {
  m.def("links", &links_between_devices,
        "As link/list.hpp has them: name, name in profiles, way, text, note and phrase of each.");
  m.def("hardware", &hardware, "What a profile is valid for: processor and GPUs.");
  m.def("transport_settings", &transport_settings, "mpi"_a,
        "How the environment chooses the transport of an MPI (mpi_name()), NAME=VALUE each.");
  m.def("mpi_name", &mpi_name, "library_version"_a);
  m.def("default_profile_path", &default_profile_path);
  m.def("codec_times_of_h200", &codec_times_of_h200,
        "By codec: seconds of encoding and of decoding by bytes of elements.");
  m.def("read_profile", &read_profile, "text"_a, "ValueError says what is wrong.");
  m.def(
      "predict", &predict, "profile"_a, "mpi"_a, "transport"_a, "peer"_a, "place"_a, "spec"_a,
      "nbytes"_a, "ratio"_a, "chunk"_a,
      "What a compressed message may take to pay, and what it takes by the cost model, with chunks "
      "of `chunk` bytes but where the profile knows better; None where it does not tell.");
}

}  // namespace mpress::python
