#include "mpi/collectives/neighbours/hints.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "mpi/objects/info_value.hpp"

namespace mpress::engine {
namespace {

int wrong(const char* key, const std::string& value, const char* expected, std::string& error) {
  error = std::string(key) + " is \"" + value + "\"; expected " + expected;
  return MPI_ERR_INFO_VALUE;
}

}  // namespace

int read_flag(MPI_Info info, const char* key, bool& flag, std::string& error) {
  const auto text = info == MPI_INFO_NULL ? std::nullopt : mpi::info_value(info, key);
  if (!text) return MPI_SUCCESS;
  flag = *text == "true" || *text == "1";
  if (!flag && *text != "false" && *text != "0")
    return wrong(key, *text, "true, false, 1 or 0", error);
  return MPI_SUCCESS;
}

int read_neighbour_hints(MPI_Info info, NeighbourHints& hints, std::string& error) {
  if (info == MPI_INFO_NULL) return MPI_SUCCESS;
  static constexpr std::array names{"auto", "direct", "combining", "digits", "lines", "ring"};
  if (const auto text = mpi::info_value(info, "iso_algorithm")) {
    const auto found = std::ranges::find(names, *text);
    if (found == names.end()) {
      return wrong("iso_algorithm", *text, "auto, direct, combining, digits, lines or ring", error);
    }
    hints.algorithm = static_cast<NeighbourHints::Algorithm>(found - names.begin());
  }
  if (const auto text = mpi::info_value(info, "iso_ports")) {
    constexpr int most_ports = 1 << 20;
    int ports = 0;
    const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), ports);
    if (failure != std::errc() || end != text->data() + text->size() || ports < 1 ||
        ports > most_ports) {
      return wrong("iso_ports", *text, "a number from 1 to 1048576", error);
    }
    hints.ports = ports;
  }
  const int code = read_flag(info, "iso_reproducible", hints.is_reproducible, error);
  return code != MPI_SUCCESS ? code
                             : read_flag(info, "iso_uniform_sizes", hints.has_uniform_sizes, error);
}

}  // namespace mpress::engine
