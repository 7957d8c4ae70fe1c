#include "core/learning/learned.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "codec/float_environment.hpp"
#include "codec/spec.hpp"
#include "config/machine.hpp"
#include "core/runtime.hpp"

namespace mpress::engine {
namespace {

constexpr const char* first_line = "mpress learned 1";
constexpr std::size_t most_lines = 64;

/// Beside the default profile, so that machines that share a home directory have one each.
std::string path_of(const Runtime& runtime) {
  if (runtime.config.profile == "off" || runtime.pacer.active()) return {};
  const std::string profile = default_profile_path();
  return profile.empty() ? profile
                         : std::filesystem::path(profile).replace_extension(".learned").string();
}

/// What the rates depend on, beside the hardware.
std::string key_of(const Runtime& runtime) {
  return runtime.surroundings.mpi + " | " + transport_settings(runtime.surroundings.mpi) + " | " +
         std::to_string(runtime.endpoints.ranks_here()) + " of " + std::to_string(runtime.size);
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
    for (std::uint64_t& rate : rates) {
      double number = 0;
      const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (code != std::errc{} || !(number >= 0 && number < 1e15)) return false;
      rate = static_cast<std::uint64_t>(number);
      line.remove_prefix(static_cast<std::size_t>(end - line.data()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
    return true;
  });
}

}  // namespace

Rates read_learned(const Runtime& runtime) {
  Rates rates{};
  const std::string key = key_of(runtime);
  for (const std::string& line : lines_of(path_of(runtime))) {
    Rates found{};
    std::string_view rest = line;
    if (read_rates(rest, found) && rest == key) rates = found;
  }
  return rates;
}

void keep_learned(const Runtime& runtime) {
  const std::string path = path_of(runtime);
  if (path.empty()) return;
  bool is_known = false;
  std::string rates;
  for (std::size_t peer = 0; peer < policy::peer_count; ++peer) {
    const double rate = runtime.policy.links().rate(static_cast<policy::Peer>(peer));
    is_known = is_known || rate != 0;
    rates += number_text(compute([=] { return std::round(rate); })) + " ";
  }
  if (!is_known) return;
  const std::string key = key_of(runtime);
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

std::string describe_learned(const Runtime& runtime, bool by_messages) {
  const policy::LinkModel& links = runtime.policy.links();
  std::string text;
  for (std::size_t i = 0; i < policy::peer_count; ++i) {
    const auto peer = static_cast<policy::Peer>(i);
    const double rate = links.rate(peer);
    if (rate == 0 || !(by_messages || policy::has_own_link(peer))) continue;
    char number[32];
    compute([&] { std::snprintf(number, sizeof number, "%.3g GB/s", rate * 1e-9); });
    text += std::string("; ") + policy::peer_names[i] + " " + number;
    if (policy::has_own_link(peer)) text += std::string(", learned by ") + links.learned_by();
  }
  return text;
}

}  // namespace mpress::engine
