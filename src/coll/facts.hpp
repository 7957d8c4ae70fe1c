// Facts of a member of a team, which members exchange when the team is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mpress::engine {

/// Facts are numbers; the exchange finds the least and the greatest of each.
enum class Fact : unsigned char {
  settings,      ///< a hash; where it differs, the team is refused
  hints,         ///< the same of the communicator's hints, without the codec
  codec_hint,    ///< the same of that; then its reductions are errors
  reproducible,  ///< its reductions have the same bits in any order of the contributions
  wants,         ///< 0: refuses
  may_see_gpus,  ///< there is a driver
  gpu_aware,
  has_hook,          ///< MPI calls mpress while it blocks
  proceeds,          ///< what is under way proceeds while MPI blocks: by that hook, or a thread
  has_thread,        ///< a progress thread
  duplicates,        ///< it may make teams by MPI_Comm_idup
  hides_duplicates,  ///< the program's copy callbacks are not called for private ones
  least_chunk,       ///< bytes: it cuts no message shorter; 0: none at all
  measures,          ///< what links are like, in MPI_Init
  learns,            ///< what links are like, from its messages
  sends_frames,      ///< it may compress, or cut, messages to memory of the host
  none_within,  ///< what is encoded with such may gain by messages in host memory, to ranks of its
  mpc_within,   ///< host, by codec; nothing to encode with gains where that is forced
  zfp_within,
  szp_within,
  none_between,  ///< the same to ranks of others
  mpc_between,
  zfp_between,
  szp_between,
  ever_sends_frames,  ///< it may come to do so
  least_framed,       ///< bytes: it sends no frame or header for a shorter message
  has_board,          ///< filled in by the team, as is the key
  key,
  count_
};
constexpr std::size_t fact_count = static_cast<std::size_t>(Fact::count_);

class Facts {
 public:
  std::uint64_t& operator[](Fact fact) { return numbers_[static_cast<std::size_t>(fact)]; }
  std::uint64_t operator[](Fact fact) const { return numbers_[static_cast<std::size_t>(fact)]; }

  std::array<std::uint64_t, fact_count>& numbers() { return numbers_; }
  const std::array<std::uint64_t, fact_count>& numbers() const { return numbers_; }

 private:
  std::array<std::uint64_t, fact_count> numbers_{};
};

}  // namespace mpress::engine
