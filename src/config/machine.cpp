#include "config/machine.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace mpress {
namespace {

/// The first line "NAME : value" of a file of the kernel's.
std::string line_of(const std::filesystem::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const auto colon = line.find(':');
    const auto first = line.find_first_not_of(" \t", colon + 1);
    if (colon == std::string::npos || first == std::string::npos) continue;
    return line.substr(first, line.find_last_not_of(" \t") - first + 1);
  }
  return {};
}

const char* set_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

}  // namespace

std::string hardware() {
  std::string text = line_of("/proc/cpuinfo", "model name");
  if (text.empty()) text = "unknown processor";
  std::set<std::string> gpus;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    gpus.insert(line_of(gpu.path() / "information", "Model"));
  }
  for (const std::string& gpu : gpus) text += "; " + gpu;
  return text;
}

std::string transport_settings() {
  constexpr const char* names[] = {
      "FI_PROVIDER",       "I_MPI_FABRICS", "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_CH4_SHM",
      "MPIR_CVAR_NOLOCAL", "OMPI_MCA_btl",  "OMPI_MCA_mtl",         "OMPI_MCA_pml",
      "UCX_NET_DEVICES",   "UCX_TLS"};
  std::string text;
  for (const char* name : names) {
    if (const char* value = set_in_environment(name)) {
      text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
    }
  }
  return text;
}

std::string mpi_name(const std::string& library_version) {
  std::istringstream words(library_version.substr(0, library_version.find_first_of(",\n")));
  std::string name;
  for (std::string word; words >> word;) {
    if (word == "Version:") continue;
    name += (name.empty() ? "" : " ") + word;
  }
  return name;
}

std::string default_profile_path() {
  std::string folder;
  if (const char* cache = set_in_environment("XDG_CACHE_HOME")) {
    folder = cache;
  } else if (const char* home = set_in_environment("HOME")) {
    folder = std::string(home) + "/.cache";
  } else {
    return {};
  }
  std::uint32_t hash = 2166136261;  // FNV-1a: clusters share homes, but not hardware
  for (const char c : hardware()) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  char name[32];
  std::snprintf(name, sizeof name, "%08x.profile", hash);
  return folder + "/mpress/" + name;
}

}  // namespace mpress
