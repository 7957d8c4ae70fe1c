#include "core/learning/tuning.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "codec/float_environment.hpp"
#include "config/machine.hpp"
#include "core/runtime.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Says how messages are judged whose costs were never measured.
std::string assumed(const Runtime& runtime, policy::Medium medium) {
  const link::Attributes* const link = policy::own_link(medium);
  const bool is_assumed = link && !link->is_measured;
  std::string which = link ? link->phrase : "in device memory";
  const char* what = " are judged by assumed costs";
  if (medium == policy::Medium::host) {
    which = "in host memory";
    what = " stay raw";
  } else if (runtime.gpu_aware && !is_assumed && !(link && runtime.raw_by_link)) {
    what = " are left to MPI";
  } else if (link && !is_assumed) {
    what = learns(runtime) ? " are judged by the first long one" : " stay raw";
  }
  return "messages " + which + what + "; 'mpress tune' measures";
}

/// Says that a profile has nothing of a medium; empty where it has.
std::string lack(const policy::Profile& profile, policy::Medium medium, const std::string& mpi,
                 const policy::Transports& ways) {
  const link::Attributes* const link = policy::own_link(medium);
  const auto place = medium == policy::Medium::host ? policy::Place::host : policy::Place::device;
  const std::string& way = ways[static_cast<std::size_t>(place)];
  const bool is_known = std::any_of(profile.links.begin(), profile.links.end(), [&](const auto& l) {
    return policy::medium({l.place, l.peer}) == medium &&
           (link || (l.mpi == mpi && l.transport == way));
  });
  if (is_known) return {};
  if (link) return std::string("the profile has no messages ") + link->phrase;
  return "the profile has no messages of " + mpi + (way.empty() ? "" : " with " + way);
}

bool read_file(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  return file.is_open() && !file.bad();
}

/// False where there is none that holds here; `error`: why one that the user named cannot be read.
bool read_profile(const Runtime& runtime, const std::string& path, policy::Profile& profile,
                  std::string& error) {
  const bool is_named = !runtime.config.profile.empty();
  std::string text, problem;
  if (!read_file(path, text)) {
    if (is_named) error = "MPRESS_PROFILE='" + path + "': " + std::strerror(errno);
    return false;
  }
  if (!parse_profile(text, profile, problem)) {
    problem = "the profile " + path + " is not one of mpress: " + problem;
    if (is_named) error = "MPRESS_PROFILE: " + problem;
  } else if (profile.hardware != hardware()) {
    problem = "the profile " + path + " was made on other hardware (" + profile.hardware +
              ", here: " + hardware() + ") and is not used";
  }
  if (!problem.empty() && error.empty() && runtime.rank == 0) trace::say(problem);
  return problem.empty();
}

}  // namespace

bool measures_links(const Runtime& runtime) {
  const Config& config = runtime.config;
  return config.learn != "off" &&
         (config.spec.codec != Codec::none || runtime.surroundings.takes_specs);
}

bool learns(const Runtime& runtime) { return measures_links(runtime) && !runtime.config.force; }

Tuning tune(const Runtime& runtime) {
  const Config& config = runtime.config;
  Tuning tuning;
  tuning.costs = policy::default_costs();
  tuning.costs.device_chunks.fill(config.chunk);
  tuning.costs.raw_is_mpis = runtime.gpu_aware && !runtime.raw_by_link;
  tuning.costs.frames_leave_host = runtime.gpu_aware && !runtime.hands_devices_to_mpi();
  const bool learns_all = config.learn == "all" && learns(runtime);
  if (config.link_rate != 0 && !learns_all) {
    const auto paced = [&] { return policy::Curve::line(0, config.link_rate); };
    for (auto& places : tuning.costs.messages) places.fill(compute(paced));
    tuning.source = "MPRESS_LINK_RATE";
    return tuning;
  }
  if (runtime.gpu_aware) {
    // How long such an MPI takes cannot be guessed: it may be as fast as the devices are linked.
    for (auto& places : tuning.costs.messages) {
      places[static_cast<std::size_t>(policy::Place::device)] = {};
    }
    // Nor from what the host's messages take, where no network is between.
    tuning.costs.assumed[static_cast<std::size_t>(policy::Peer::same_host)] = false;
  }
  const std::string path = config.profile.empty() ? default_profile_path() : config.profile;
  policy::Profile profile;
  if (path == "off") {
    tuning.source = learns(runtime) ? "measured by this run" : "assumptions, by MPRESS_PROFILE";
    return tuning;
  }
  const bool exists = !path.empty() && read_profile(runtime, path, profile, tuning.error);
  if (!exists) profile = {};
  tuning.source = exists            ? path + ", " + profile.date
                  : learns(runtime) ? "measured by this run"
                                    : "assumptions";
  // An MPI that takes device memory has another way for it than by the host.
  const std::string by_host = transport_settings(runtime.surroundings.mpi);
  const std::string aware = by_host.empty() ? "gpu-aware" : by_host + " gpu-aware";
  const policy::Transports transports{by_host, runtime.gpu_aware ? aware : by_host};
  costs_of(profile, runtime.surroundings.mpi, transports, tuning.costs);
  if (learns_all) {
    for (auto& places : tuning.costs.messages) {
      places[static_cast<std::size_t>(policy::Place::host)] = {};
    }
  }
  if (config.is_chunk_set) tuning.costs.device_chunks.fill(config.chunk);
  for (std::size_t i = 0; i < policy::medium_count; ++i) {
    const auto medium = static_cast<policy::Medium>(i);
    const std::string lacking = lack(profile, medium, runtime.surroundings.mpi, transports);
    if (lacking.empty()) continue;
    tuning.lacking[i] =
        (exists ? lacking : "no profile of this machine") + ": " + assumed(runtime, medium);
  }
  return tuning;
}

}  // namespace mpress::engine
