#include "config/config.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "codec/float_environment.hpp"
#include "config/knobs.hpp"
#include "config/version.hpp"
#include "link/list.hpp"

namespace mpress {
namespace {

/// The kill switch of each family, in their order.
constexpr const char* family_switches[] = {
    "MPRESS_DISABLE_P2P",
    "MPRESS_DISABLE_PERSISTENT",
    "MPRESS_DISABLE_SENDRECV",
    "MPRESS_DISABLE_DERIVED",
    "MPRESS_DISABLE_ALLTOALL",
    "MPRESS_DISABLE_GATHER",
    "MPRESS_DISABLE_SCATTER",
    "MPRESS_DISABLE_ALLGATHER",
    "MPRESS_DISABLE_BCAST",
    "MPRESS_DISABLE_NEIGHBOR",
    "MPRESS_DISABLE_ALLREDUCE",
    "MPRESS_DISABLE_REDUCE",
    "MPRESS_DISABLE_REDUCE_SCATTER",
};
static_assert(std::size(family_switches) == static_cast<std::size_t>(Family::count_));

const char* knob_value(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

bool wrong(std::string& error, const char* name, const char* value, const char* expected) {
  error = std::string(name) + "='" + value + "': expected " + expected;
  return false;
}

bool read_flag(const char* name, bool& flag, std::string& error) {
  const char* value = knob_value(name);
  return !value || read_switch(name, value, flag, error);
}

/// op=algorithm, separated by commas.
bool read_algorithms(const char* name, const char* value, Config& config, std::string& error) {
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const auto middle = std::min(item.find('='), item.size());
    const auto op = schedule::op_of(item.substr(0, middle));
    if (!op) {
      return wrong(error, name, value,
                   "OPERATION=ALGORITHM, with one of bcast, scatter, gather, allgather, alltoall");
    }
    const auto algorithm = schedule::algorithm_of(item.substr(std::min(middle + 1, item.size())));
    const auto choices = schedule::run_only(schedule::all_algorithms_of(*op), *op);
    if (!algorithm || std::find(choices.begin(), choices.end(), *algorithm) == choices.end()) {
      std::string expected = std::string("for ") + schedule::name(*op) + " one of";
      for (const schedule::Algorithm one : choices)
        expected += std::string(" ") + schedule::name(one);
      return wrong(error, name, value, expected.c_str());
    }
    config.algorithms[static_cast<std::size_t>(*op)] = *algorithm;
  }
  return true;
}

bool is_job(const char* text) {
  return std::strlen(text) == 32 && std::strspn(text, "0123456789abcdefABCDEF") == 32;
}

/// Whole units of every codec, and within what MPI counts in an int.
bool is_chunk(std::size_t bytes) { return bytes % 4096 == 0 && bytes <= (std::size_t{1} << 30); }

bool one_of(const char* value, std::initializer_list<const char*> choices) {
  for (const char* choice : choices) {
    if (std::strcmp(value, choice) == 0) return true;
  }
  return false;
}

bool read_link(const char* value, std::string& link, std::string& error) {
  std::string names = "auto, mpi";
  for (const link::Attributes& one : link::between_devices) {
    const bool is_last = one.kind == link::between_devices.back().kind;
    names += std::string(is_last ? " or " : ", ") + one.name;
  }
  if (!one_of(value, {"auto", "mpi"}) && !link::named(value)) {
    return wrong(error, "MPRESS_LINK", value, names.c_str());
  }
  link = value;
  return true;
}

}  // namespace

bool parse_bytes(const std::string& text, std::size_t& bytes) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || end - stop > 1) return false;
  int shift = 0;
  if (stop != end) {
    switch (*stop) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: return false;
    }
  }
  if (value > (SIZE_MAX >> shift)) return false;
  bytes = value << shift;
  return true;
}

bool parse_rate(const std::string& text, double& bytes_per_second) {
  return compute([&] {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (code != std::errc{}) return false;
    const std::string unit(stop, end);
    double factor = 0;
    if (unit.empty()) factor = 1;
    if (unit == "bit") factor = 1.0 / 8;
    if (unit == "kbit") factor = 1e3 / 8;
    if (unit == "Mbit") factor = 1e6 / 8;
    if (unit == "Gbit") factor = 1e9 / 8;
    const double rate = value * factor;
    if (!(rate > 0) || !std::isfinite(rate)) return false;
    bytes_per_second = rate;
    return true;
  });
}

bool read_switch(const char* name, const char* value, bool& is_on, std::string& error) {
  if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0) {
    return wrong(error, name, value, "0 or 1");
  }
  is_on = *value == '1';
  return true;
}

bool read_spec(const char* name, const char* value, Spec& spec, std::string& error) {
  if (parse_spec(value, spec, error)) return true;
  error = std::string(name) + ": " + error;
  return false;
}

bool read_threshold(const char* name, const char* value, std::size_t& bytes, std::string& error) {
  return parse_bytes(value, bytes) || wrong(error, name, value, "bytes, such as 65536, 64K or 1M");
}

bool read_chunk(const char* name, const char* value, std::size_t& bytes, std::string& error) {
  return (parse_bytes(value, bytes) && is_chunk(bytes)) ||
         wrong(error, name, value, "0, or bytes: a multiple of 4096 up to 1G, such as 512K or 1M");
}

bool load_config(Config& config, std::string& error) {
  if (!check_knob_names(error)) return false;
  if (const char* value = knob_value("MPRESS_CODEC")) {
    if (!read_spec("MPRESS_CODEC", value, config.spec, error)) return false;
  }
  if (!read_flag("MPRESS_FORCE", config.force, error)) return false;
  if (!read_flag("MPRESS_SAME_BITS", config.same_bits, error)) return false;
  if (!read_flag("MPRESS_REPRODUCIBLE", config.reproducible, error)) return false;
  if (!read_flag("MPRESS_ISO_CHECK", config.iso_check, error)) return false;
  if (!read_flag("MPRESS_MEASURE_ERROR", config.measures_error, error)) return false;
  if (!read_flag("MPRESS_DISABLE", config.disabled, error)) return false;
  for (std::size_t i = 0; i < config.disabled_families.size(); ++i) {
    if (!read_flag(family_switches[i], config.disabled_families[i], error)) return false;
  }
  if (!read_flag("MPRESS_DISABLE_ZERO_COPY", config.zero_copy_disabled, error)) return false;
  if (const char* value = knob_value("MPRESS_THRESHOLD")) {
    if (!read_threshold("MPRESS_THRESHOLD", value, config.threshold, error)) return false;
    config.is_threshold_set = true;
  }
  if (const char* value = knob_value("MPRESS_CHUNK")) {
    if (!read_chunk("MPRESS_CHUNK", value, config.chunk, error)) return false;
    config.is_chunk_set = true;
  }
  if (const char* value = knob_value("MPRESS_POOL_LIMIT")) {
    config.is_pool_limit_set = true;
    if (!parse_bytes(value, config.pool_limit)) {
      return wrong(error, "MPRESS_POOL_LIMIT", value, "bytes, such as 256M or 1G");
    }
  }
  if (const char* value = knob_value("MPRESS_HOST_WINDOW"); value && std::strcmp(value, "auto")) {
    if (!parse_bytes(value, config.host_window) || config.host_window == 0) {
      return wrong(error, "MPRESS_HOST_WINDOW", value, "bytes, such as 32M, or auto");
    }
  }
  if (const char* value = knob_value("MPRESS_LINK")) {
    if (!read_link(value, config.link, error)) return false;
  }
  if (const char* value = knob_value("MPRESS_JOINT_KERNELS")) {
    if (!one_of(value, {"auto", "always", "never"})) {
      return wrong(error, "MPRESS_JOINT_KERNELS", value, "auto, always or never");
    }
    config.joint_kernels = value;
  }
  if (const char* value = knob_value("MPRESS_PROGRESS")) {
    if (!one_of(value, {"calls", "thread"})) {
      return wrong(error, "MPRESS_PROGRESS", value, "calls or thread");
    }
    config.progress_thread = std::strcmp(value, "thread") == 0;
    config.may_start_thread = false;
  }
  if (const char* value = knob_value("MPRESS_GPU")) {
    if (!one_of(value, {"cuda", "off"}) && !std::strchr(value, '/')) {
      return wrong(error, "MPRESS_GPU", value, "cuda, off, or the path of a library, with a '/'");
    }
    config.gpu = value;
  }
  if (const char* value = knob_value("MPRESS_GPU_AWARE")) {
    if (!one_of(value, {"auto", "0", "1"})) {
      return wrong(error, "MPRESS_GPU_AWARE", value, "auto, 0 or 1");
    }
    config.gpu_aware = value;
  }
  if (const char* value = knob_value("MPRESS_PROFILE")) config.profile = value;
  if (const char* value = knob_value("MPRESS_LINK_RATE")) {
    if (!parse_rate(value, config.link_rate)) {
      return wrong(error, "MPRESS_LINK_RATE", value,
                   "a positive rate, such as 1Gbit, 100Mbit or bytes a second");
    }
  }
  if (const char* value = knob_value("MPRESS_LEARN")) {
    if (!one_of(value, {"auto", "off", "all"})) {
      return wrong(error, "MPRESS_LEARN", value, "auto, off or all");
    }
    config.learn = value;
  }
  if (const char* value = knob_value("MPRESS_ALGORITHM")) {
    if (!read_algorithms("MPRESS_ALGORITHM", value, config, error)) return false;
  }
  if (const char* value = knob_value("MPRESS_JOB")) {
    if (!is_job(value)) return wrong(error, "MPRESS_JOB", value, "32 hexadecimal digits");
    config.job = value;
  }
  if (const char* value = knob_value("MPRESS_ISA")) {
    if (!one_of(value, {"best", "portable", "avx2", "avx512"})) {
      return wrong(error, "MPRESS_ISA", value, "best, portable, avx2 or avx512");
    }
  }
  if (const char* value = knob_value("MPRESS_RECORD")) config.record_directory = value;
  if (const char* value = knob_value("MPRESS_PROTOCOLS")) config.protocols_file = value;
  if (const char* value = knob_value("MPRESS_TRACE")) {
    if (!parse_bytes(value, config.trace)) {
      return wrong(error, "MPRESS_TRACE", value, "a number of events, such as 256K, or 0");
    }
  }
  return true;
}

std::string agreed_settings(const Config& config) {
  std::string families;  // a digit each
  for (const bool disabled : config.disabled_families) families += disabled ? '1' : '0';
  std::string algorithms;  // of those that are set
  for (std::size_t op = 0; op < config.algorithms.size(); ++op) {
    if (config.algorithms[op] == schedule::Algorithm::none) continue;
    algorithms += std::string(algorithms.empty() ? " algorithm=" : ",") +
                  schedule::name(static_cast<schedule::Op>(op)) + "=" +
                  schedule::name(config.algorithms[op]);
  }
  return std::string("version=") + version + " frame=" + std::to_string(frame_version) +
         " grid=" + std::to_string(grid_version) + " codec=" + to_string(config.spec) +
         " force=" + (config.force ? "1" : "0") + " same_bits=" + (config.same_bits ? "1" : "0") +
         " reproducible=" + (config.reproducible ? "1" : "0") +
         " iso_check=" + (config.iso_check ? "1" : "0") +
         " measure_error=" + (config.measures_error ? "1" : "0") +
         " threshold=" + std::to_string(config.threshold) +
         " disable=" + (config.disabled ? "1" : "0") + " disable_families=" + families +
         " chunk=" + std::to_string(config.chunk) + " link=" + config.link +
         " link_rate=" + number_text(config.link_rate) + algorithms;
}

}  // namespace mpress
