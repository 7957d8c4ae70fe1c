#include "engine/learning/tuning.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "codec/float_environment.hpp"
#include "config/machine.hpp"
#include "engine/job/job.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// What holds for messages whose costs nobody has measured.
std::string assumed(const Job& job, policy::Medium medium) {
  const link::Attributes* const link = policy::own_link(medium);
  const bool is_assumed = link && !link->is_measured;
  std::string which = link ? link->phrase : "in device memory";
  const char* what = " are judged by assumed costs";
  if (medium == policy::Medium::host) {
    which = "in host memory";
    what = " stay raw";
  } else if (job.gpu_aware && !is_assumed && !(link && job.raw_by_link)) {
    what = " are left to MPI";
  } else if (link && !is_assumed) {
    what = learns(job) ? " are judged by the first long one" : " stay raw";
  }
  return "messages " + which + what + "; 'mpress tune' measures";
}

/// What a profile lacks of a medium; empty where it tells.
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

/// How messages of each place travel. What an MPI that takes device memory does with it is another
/// way than by the host.
policy::Transports ways(const Job& job, const std::string& mpi) {
  const std::string host = transport_settings(mpi);
  const std::string aware =
      job.gpu_aware ? (host.empty() ? "gpu-aware" : host + " gpu-aware") : host;
  return {host, aware};
}

void say_once(const Job& job, const std::string& text) {
  if (job.rank == 0) trace::say(text);
}

bool read_file(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  return file.is_open() && !file.bad();
}

/// False where there is none that holds here.
bool read_profile(const Job& job, const std::string& path, policy::Profile& profile) {
  const bool is_named = !job.config.profile.empty();
  std::string text, error;
  if (!read_file(path, text)) {
    if (is_named) mpi::fatal("MPRESS_PROFILE='" + path + "': " + std::strerror(errno));
    return false;
  }
  if (!parse_profile(text, profile, error)) {
    error = "the profile " + path + " is not one of mpress: " + error;
    if (is_named) mpi::fatal("MPRESS_PROFILE: " + error);
    say_once(job, error);
    return false;
  }
  if (profile.hardware != hardware()) {
    say_once(job, "the profile " + path + " was made on other hardware (" + profile.hardware +
                      ", here: " + hardware() + ") and is not used");
    return false;
  }
  return true;
}

}  // namespace

std::string own_mpi() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');  // too long for small stacks
  int length = 0;
  mpi::calls().Get_library_version(text.data(), &length);
  return mpi_name(text.c_str());
}

bool measures_links(const Job& job) {
  const Config& config = job.config;
  return config.learn != "off" && (config.spec.codec != Codec::none || job.takes_specs);
}

bool learns(const Job& job) { return measures_links(job) && !job.config.force; }

Tuning tune(const Job& job) {
  Tuning tuning;
  tuning.costs = policy::default_costs();
  tuning.costs.device_chunks.fill(job.config.chunk);
  tuning.costs.raw_is_mpis = job.gpu_aware && !job.raw_by_link;
  tuning.costs.frames_leave_host = job.gpu_aware && !job.hands_devices_to_mpi();
  const bool learns_all = job.config.learn == "all" && learns(job);
  if (job.config.link_rate != 0 && !learns_all) {
    const auto paced = [&] { return policy::Curve::line(0, job.config.link_rate); };
    for (auto& places : tuning.costs.messages) places.fill(compute(paced));
    tuning.source = "MPRESS_LINK_RATE";
    return tuning;
  }
  if (job.gpu_aware) {
    // What such an MPI takes is not to be guessed: it may be as fast as the devices are linked.
    for (auto& places : tuning.costs.messages) {
      places[static_cast<std::size_t>(policy::Place::device)] = {};
    }
    // Nor from what the host's messages take, where no network is between.
    tuning.costs.assumed[static_cast<std::size_t>(policy::Peer::same_host)] = false;
  }
  const std::string path = job.config.profile.empty() ? default_profile_path() : job.config.profile;
  policy::Profile profile;
  if (path == "off") {
    tuning.source = learns(job) ? "measured by this run" : "assumptions, by MPRESS_PROFILE";
    return tuning;
  }
  const bool exists = !path.empty() && read_profile(job, path, profile);
  if (!exists) profile = {};
  tuning.source = exists        ? path + ", " + profile.date
                  : learns(job) ? "measured by this run"
                                : "assumptions";
  const std::string mpi = own_mpi();
  const policy::Transports transports = ways(job, mpi);
  costs_of(profile, mpi, transports, tuning.costs);
  if (learns_all) {
    for (auto& places : tuning.costs.messages) {
      places[static_cast<std::size_t>(policy::Place::host)] = {};
    }
  }
  if (job.config.is_chunk_set) tuning.costs.device_chunks.fill(job.config.chunk);
  for (std::size_t i = 0; i < policy::medium_count; ++i) {
    const auto medium = static_cast<policy::Medium>(i);
    const std::string lacking = lack(profile, medium, mpi, transports);
    if (lacking.empty()) continue;
    tuning.lacking[i] =
        (exists ? lacking : "no profile of this machine") + ": " + assumed(job, medium);
  }
  return tuning;
}

}  // namespace mpress::engine
