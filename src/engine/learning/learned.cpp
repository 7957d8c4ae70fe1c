#include "engine/learning/learned.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "codec/float_environment.hpp"
#include "codec/spec.hpp"
#include "config/machine.hpp"
#include "engine/job/job.hpp"
#include "engine/learning/tuning.hpp"

namespace mpress::engine {
namespace {

constexpr const char* first_line = "mpress learned 1";
constexpr std::size_t most_lines = 64;

/// Beside the default profile, so that machines that share a home have one each.
std::string path_of(const Job& job) {
  if (job.config.profile == "off" || job.pacer.active()) return {};
  const std::string profile = default_profile_path();
  return profile.empty() ? profile
                         : std::filesystem::path(profile).replace_extension(".learned").string();
}

/// What the rates depend on, beside the hardware.
std::string key_of(const Job& job) {
  const std::string mpi = own_mpi();
  return mpi + " | " + transport_settings(mpi) + " | " +
         std::to_string(job.endpoints.ranks_here()) + " of " + std::to_string(job.size);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::vector<std::string> lines;
  if (!std::getline(file, line) || line != first_line) return lines;
  while (lines.size() < most_lines && std::getline(file, line)) lines.push_back(line);
  return lines;
}

/// Takes a line's numbers off it.
bool read_rates(std::string_view& line, Rates& rates) {
  return compute([&] {
    for (double& rate : rates) {
      const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), rate);
      if (code != std::errc{} || !(rate >= 0)) return false;
      line.remove_prefix(static_cast<std::size_t>(end - line.data()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
    return true;
  });
}

}  // namespace

Rates read_learned(const Job& job) {
  Rates rates{};
  const std::string path = path_of(job);
  if (path.empty()) return rates;
  const std::string key = key_of(job);
  for (const std::string& line : lines_of(path)) {
    Rates found{};
    std::string_view rest = line;
    if (read_rates(rest, found) && rest == key) rates = found;
  }
  return rates;
}

void keep_learned(const Job& job) {
  const std::string path = path_of(job);
  if (path.empty()) return;
  bool is_known = false;
  std::string rates;
  for (std::size_t peer = 0; peer < policy::peer_count; ++peer) {
    const double rate = job.policy.rate(static_cast<policy::Peer>(peer));
    is_known = is_known || rate != 0;
    rates += number_text(compute([=] { return std::round(rate); })) + " ";
  }
  if (!is_known) return;
  const std::string key = key_of(job);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::vector<std::string> lines = lines_of(path);
  std::erase_if(lines, [&](const std::string& line) { return line.ends_with(" " + key); });
  if (lines.size() >= most_lines) lines.erase(lines.begin());  // the oldest
  // Hosts may share the folder, and write at the same time: the last one's file stays.
  char host[64] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string fresh = path + "." + host + "." + std::to_string(::getpid());
  {
    std::ofstream file(fresh);
    file << first_line << "\n";
    for (const std::string& line : lines) file << line << "\n";
    file << rates << key << "\n";
    if (!file.flush()) {
      std::filesystem::remove(fresh, ignored);
      return;
    }
  }
  std::filesystem::rename(fresh, path, ignored);
}

}  // namespace mpress::engine
