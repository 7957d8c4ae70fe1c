#include "config/machine.hpp"

#include <sys/utsname.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

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

/// Asks the kernel.
std::string read_hardware() {
  std::string text = line_of("/proc/cpuinfo", "model name");
  if (text.empty()) {  // as on Arm and POWER
    utsname system{};
    ::uname(&system);
    text = system.machine;
    for (const char* name : {"cpu", "CPU implementer", "CPU part"}) {
      const std::string value = line_of("/proc/cpuinfo", name);
      if (!value.empty()) text += " " + value;
    }
  }
  std::set<std::string> gpus;
  std::error_code error;
  std::filesystem::directory_iterator gpu("/proc/driver/nvidia/gpus", error);
  for (; !error && gpu != std::filesystem::directory_iterator(); gpu.increment(error)) {
    gpus.insert(line_of(gpu->path() / "information", "Model"));
  }
  gpus.erase("");
  for (const std::string& model : gpus) text += "; " + model;
  return text;
}

}  // namespace

const std::string& hardware() {
  static const std::string found = read_hardware();
  return found;
}

std::string transport_settings(const std::string& mpi) {
  constexpr const char* names[] = {
      "FI_PROVIDER",       "I_MPI_FABRICS", "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_CH4_SHM",
      "MPIR_CVAR_NOLOCAL", "OMPI_MCA_btl",  "OMPI_MCA_mtl",         "OMPI_MCA_pml",
      "UCX_NET_DEVICES",   "UCX_TLS"};
  const auto is_of_another = [&](std::string_view name, std::string_view prefix,
                                 std::string_view family) {
    return name.rfind(prefix, 0) == 0 && mpi.rfind(family, 0) != 0;
  };
  std::string text;
  for (const char* name : names) {
    const char* value = set_in_environment(name);
    if (!value || is_of_another(name, "OMPI_", "Open MPI") ||
        is_of_another(name, "MPIR_", "MPICH") || is_of_another(name, "I_MPI_", "Intel")) {
      continue;
    }
    text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  text.erase(text.find_last_not_of(" \t") + 1);
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

std::size_t last_level_cache() {
  std::map<std::string, std::size_t> bytes_of;  // by the processors that share one
  std::error_code error;
  std::filesystem::directory_iterator cpu("/sys/devices/system/cpu", error);
  for (; !error && cpu != std::filesystem::directory_iterator(); cpu.increment(error)) {
    const std::filesystem::path cache = cpu->path() / "cache" / "index3";
    std::string processors;
    std::size_t kilobytes = 0;
    std::ifstream(cache / "shared_cpu_list") >> processors;
    std::ifstream(cache / "size") >> kilobytes;
    if (!processors.empty()) bytes_of[processors] = kilobytes << 10;
  }
  std::size_t bytes = 0;
  for (const auto& cache : bytes_of) bytes += cache.second;
  return bytes;
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
