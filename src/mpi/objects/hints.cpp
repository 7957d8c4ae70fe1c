#include "mpi/objects/hints.hpp"

#include <cstring>

#include "config/config.hpp"
#include "config/knobs.hpp"
#include "mpi/objects/info_value.hpp"

namespace mpress::mpi {
namespace {

constexpr const char* codec_key = "mpress_codec";
constexpr const char* threshold_key = "mpress_threshold";
constexpr const char* chunk_key = "mpress_chunk";
constexpr const char* reproducible_key = "mpress_reproducible";

}  // namespace

std::optional<std::string> info_value(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  int room = sizeof value;
  const Calls& mpi = calls();
  const int code = mpi.Info_get_string ? mpi.Info_get_string(info, key, &room, value, &found)
                                       : mpi.Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  if (code != MPI_SUCCESS || !found) return std::nullopt;
  return value;
}

namespace {

/// A key that begins like ours but is none would otherwise be ignored by everyone.
bool check_keys(MPI_Info info, std::string& error) {
  int count = 0;
  if (calls().Info_get_nkeys(info, &count) != MPI_SUCCESS) return true;  // MPI will refuse
  for (int i = 0; i < count; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    calls().Info_get_nthkey(info, i, key);
    if (!check_info_key(key, error)) return false;
  }
  return true;
}

}  // namespace

bool has_shared_keys(MPI_Info info) {
  return info != MPI_INFO_NULL &&
         (info_value(info, codec_key) || info_value(info, reproducible_key));
}

int read_hints(MPI_Info info, Hints& hints, std::string& error) {
  if (info == MPI_INFO_NULL) return MPI_SUCCESS;
  if (!check_keys(info, error)) return MPI_ERR_INFO_KEY;
  if (const auto text = info_value(info, codec_key)) {
    Spec spec;
    if (!read_spec(codec_key, text->c_str(), spec, error)) return MPI_ERR_INFO_VALUE;
    hints.codec = {*text, spec};
  }
  if (const auto text = info_value(info, threshold_key)) {
    std::size_t bytes = 0;
    if (!read_threshold(threshold_key, text->c_str(), bytes, error)) return MPI_ERR_INFO_VALUE;
    hints.threshold = {*text, bytes};
  }
  if (const auto text = info_value(info, chunk_key)) {
    std::size_t bytes = 0;
    if (!read_chunk(chunk_key, text->c_str(), bytes, error)) return MPI_ERR_INFO_VALUE;
    hints.chunk = {*text, bytes};
  }
  if (const auto text = info_value(info, reproducible_key)) {
    bool is_on = false;
    if (!read_switch(reproducible_key, text->c_str(), is_on, error)) return MPI_ERR_INFO_VALUE;
    hints.reproducible = {*text, is_on};
  }
  return MPI_SUCCESS;
}

void write_hints(const Hints& hints, MPI_Info info) {
  const Calls& mpi = calls();
  if (hints.codec) mpi.Info_set(info, codec_key, hints.codec->text.c_str());
  if (hints.threshold) mpi.Info_set(info, threshold_key, hints.threshold->text.c_str());
  if (hints.chunk) mpi.Info_set(info, chunk_key, hints.chunk->text.c_str());
  if (hints.reproducible) {
    mpi.Info_set(info, reproducible_key, hints.reproducible->text.c_str());
  }
}

}  // namespace mpress::mpi
