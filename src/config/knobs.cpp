#include "config/knobs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

extern char** environ;

namespace mpress {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

template <std::size_t count>
bool is_in(const Knob (&table)[count], const std::string& name) {
  return std::any_of(std::begin(table), std::end(table),
                     [&](const Knob& knob) { return name == knob.name; });
}

template <std::size_t count>
const char* nearest_in(const Knob (&table)[count], const std::string& name) {
  return std::min_element(std::begin(table), std::end(table),
                          [&](const Knob& a, const Knob& b) {
                            return edit_distance(name, a.name) < edit_distance(name, b.name);
                          })
      ->name;
}

}  // namespace

const char* nearest_knob(const std::string& name) { return nearest_in(knobs, name); }

bool check_knob_names(std::string& error) {
  for (char** entry = environ; entry && *entry; ++entry) {
    if (std::strncmp(*entry, "MPRESS_", 7) != 0) continue;
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (is_in(knobs, name)) continue;
    error = "unknown environment variable " + name + "; did you mean " + nearest_knob(name) + "?";
    return false;
  }
  return true;
}

bool check_info_key(const std::string& key, std::string& error) {
  if (key.rfind("mpress_", 0) != 0 || is_in(info_keys, key)) return true;
  error = "unknown info key " + key + "; did you mean " + nearest_in(info_keys, key) + "?";
  return false;
}

}  // namespace mpress
