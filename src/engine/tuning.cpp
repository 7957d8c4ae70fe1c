#include "engine/tuning.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "config/machine.hpp"
#include "engine/job.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

std::string own_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  link::mpi().Get_library_version(text, &length);
  return mpi_name(text);
}

constexpr const char* assumed =
    "messages in device memory are judged by assumed costs, and those in host memory stay raw; "
    "'mpress tune' measures";

void say_once(const Job& job, const std::string& text) {
  if (job.rank == 0) trace::say(text);
}

bool read_file(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  if (!file || !(all << file.rdbuf())) return false;
  text = all.str();
  return true;
}

/// False where there is none that holds here.
bool read_profile(const Job& job, const std::string& path, policy::Profile& profile) {
  const bool is_named = !job.config.profile.empty();
  std::string text, error;
  if (!read_file(path, text)) {
    if (is_named) link::fatal("MPRESS_PROFILE='" + path + "': " + std::strerror(errno));
    return false;
  }
  if (!parse_profile(text, profile, error)) {
    error = "the profile " + path + " is not one of mpress: " + error;
    if (is_named) link::fatal("MPRESS_PROFILE: " + error);
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

Tuning tune(const Job& job) {
  Tuning tuning;
  tuning.costs = policy::default_costs();
  if (job.config.link_rate > 0) {
    for (auto& places : tuning.costs.messages) {
      places.fill(policy::Curve::line(0, job.config.link_rate));
    }
    tuning.source = "MPRESS_LINK_RATE";
    return tuning;
  }
  if (job.gpu_aware) {
    // What such an MPI takes is not to be guessed: it may be as fast as the devices are linked.
    for (auto& places : tuning.costs.messages) {
      places[static_cast<std::size_t>(policy::Place::device)] = {};
    }
  }
  const std::string path = job.config.profile.empty() ? default_profile_path() : job.config.profile;
  policy::Profile profile;
  if (path == "off") {
    tuning.source = "assumptions, by MPRESS_PROFILE";
    return tuning;
  }
  if (path.empty() || !read_profile(job, path, profile)) {
    tuning.source = "assumptions";
    tuning.lacking = std::string("no profile of this machine: ") + assumed;
    return tuning;
  }
  const std::string mpi = own_mpi(), transport = transport_settings();
  costs_of(profile, mpi, transport, tuning.costs);
  tuning.costs.frames_leave_host = job.gpu_aware;
  tuning.source = path + ", " + profile.date;
  const bool is_known = std::any_of(profile.links.begin(), profile.links.end(),
                                    [&](const policy::Profile::Link& link) {
                                      return link.mpi == mpi && link.transport == transport;
                                    });
  if (!is_known) {
    const std::string way = transport.empty() ? "" : " with " + transport;
    tuning.lacking = "the profile has no messages of " + mpi + way + ": " + assumed;
    tuning.source += ", which lacks " + mpi + way;
  }
  return tuning;
}

}  // namespace mpress::engine
