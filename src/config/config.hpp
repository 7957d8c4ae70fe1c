// The settings of a process, read from the environment once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/spec.hpp"
#include "schedule/algorithms.hpp"

namespace mpress {

/// Calls, or messages, that a kill switch leaves uncompressed.
enum class Family : unsigned char {
  p2p,
  persistent,
  sendrecv,
  derived,
  alltoall,
  gather,
  scatter,
  allgather,
  bcast,
  neighbor,
  allreduce,
  reduce,
  reduce_scatter,
  count_
};

/// Is it one of point-to-point calls?
constexpr bool is_of_messages(Family family) { return family <= Family::sendrecv; }
/// Of reductions?
constexpr bool is_of_reductions(Family family) {
  return family >= Family::allreduce && family < Family::count_;
}

struct Config {
  Spec spec;
  bool force = false;
  bool same_bits = false;       ///< a lossy broadcast's root gets what the others get
  bool reproducible = false;    ///< reductions have the same bits in any order of what is brought
  bool iso_check = false;       ///< neighbourhoods are compared when they are made
  bool measures_error = false;  ///< of codecs with a loss that has no bound
  bool disabled = false;
  std::array<bool, static_cast<std::size_t>(Family::count_)> disabled_families{};
  bool zero_copy_disabled = false;
  std::size_t threshold = 64 * 1024;   ///< bytes
  bool is_threshold_set = false;       ///< it holds for slow links, too
  std::size_t chunk = 1024 * 1024;     ///< bytes of elements in a chunk; 0: no chunks
  bool is_chunk_set = false;           ///< it rules over the profile's
  std::size_t pool_limit = 1u << 30;   ///< bytes that chunks on their way may hold
  bool is_pool_limit_set = false;      ///< it holds for the memory of any GPU, however large
  std::size_t host_window = 0;         ///< bytes; 0: as the processor's cache allows
  std::string joint_kernels = "auto";  ///< or "always", "never"
  std::string link = "auto";           ///< or "mpi", "peer", "host"
  bool progress_thread = false;        ///< MPRESS_PROGRESS=thread
  bool may_start_thread =
      true;                  ///< later, where a call needs it: unless MPRESS_PROGRESS says calls
  std::string gpu = "cuda";  ///< or "off", or a path with a '/'
  std::string gpu_aware = "auto";  ///< or "0", "1"
  std::string profile;             ///< a path, "off", or empty for the default
  double link_rate = 0;            ///< bytes a second; 0: not paced
  std::string learn = "auto";      ///< or "off", "all"
  /// MPRESS_ALGORITHM, by schedule::Op; none: the cost model's choice.
  std::array<schedule::Algorithm, schedule::op_count> algorithms{};
  std::string job;               ///< MPRESS_JOB, or empty
  std::string record_directory;  ///< or empty
  std::string protocols_file;    ///< where rank 0 writes its table of protocols; empty: nowhere
  std::size_t trace = 0;         ///< events to keep for the timeline; 0: none

  bool is_disabled(Family family) const {
    return disabled_families[static_cast<std::size_t>(family)];
  }
};

/// Reads and checks the environment. On failure returns false and one sentence that names the
/// variable and what was expected.
bool load_config(Config& config, std::string& error);

/// Settings that are also given in other places than the environment: reads the `value` of what
/// is called `name` there. Same error convention.
bool read_switch(const char* name, const char* value, bool& is_on, std::string& error);
bool read_spec(const char* name, const char* value, Spec& spec, std::string& error);
bool read_threshold(const char* name, const char* value, std::size_t& bytes, std::string& error);
bool read_chunk(const char* name, const char* value, std::size_t& bytes, std::string& error);

/// Bytes: a whole number with an optional suffix K, M or G (powers of 1024).
bool parse_bytes(const std::string& text, std::size_t& bytes);

/// A rate: N[kMG]bit (bits a second, powers of 1000), or plain bytes a second. Positive, finite.
bool parse_rate(const std::string& text, double& bytes_per_second);

/// Text that two ranks must agree on: the release, the format version and every setting that
/// decides how messages are written.
std::string agreed_settings(const Config& config);

}  // namespace mpress
