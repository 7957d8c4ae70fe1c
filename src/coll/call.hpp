// A collective call as all members of its team know it.
//
// Each member chooses an algorithm by itself, and all have to choose alike. AgreedCall is all that
// a choice may look at: arguments that are equal on every member, facts of the team, and words that
// members have exchanged for this call. A buffer, a rank, a clock or a learned cost is a
// member's own, and has no place here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/spec.hpp"
#include "coll/numbers.hpp"
#include "config/config.hpp"
#include "link/list.hpp"
#include "trace/record.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

/// Bytes from which a block, or a pair's, is long enough to be compressed; all members share it.
inline std::size_t least_long(const Config& config) {
  return std::max(wire::min_frame_bytes, config.threshold);
}

/// A collective call, as its name tells.
struct Collective {
  trace::Op op = trace::Op::count_;  ///< count_: of none that mpress serves
  Family family = Family::count_;    ///< of its kill switch
  bool has_own_counts = false;       ///< no rank knows all counts, each those of its own pairs
  bool has_many_readers = false;     ///< a block goes to several ranks
  bool reduces = false;
};

/// Members give the same call the same form, as MPI asks for.
enum class Form : unsigned char { blocking, immediate, persistent };

/// The elements that each member contributes to a reduction.
struct ReductionShape {
  codec::Combine how;
  ElementType type;
  std::uint64_t count;
  std::uint64_t item;  ///< elements of an item of MPI's: 2, where that is complex

  std::size_t width() const { return element_size(type); }
  std::size_t bytes() const { return count * width(); }
};

/// A team, as its members know it alike.
struct TeamFacts {
  int ranks = 1;
  int hosts = 1;
  link::Kind between_devices = link::kind_at(0);  ///< the slowest link between members' devices
  bool has_shared_memory = false;  ///< that link has memory in which all members' kernels can meet
  bool may_see_devices = false;    ///< a member could have buffers there that made a difference
  bool may_have_kernels = false;   ///< of all members, as settings go
  std::size_t most_offered = 0;    ///< words that each member may tell all others at a call

  bool is_linked() const { return between_devices == link::Kind::peer; }
};

struct AgreedCall {
  Collective call;
  Form form = Form::blocking;
  TeamFacts team;
  int root = 0;
  bool has_topology = false;     ///< it is a neighbourhood's
  std::size_t bytes = 0;         ///< of a block, or of all of a broadcast; 0: members differ
  std::size_t longest = 0;       ///< of the longest block; as `bytes`, where all are alike
  bool is_long_enough = true;    ///< for codecs
  bool is_short = false;         ///< so short that messages of mpress's do not pay
  bool is_reproducible = false;  ///< a reduction of the same bits in any order of the ranks
  std::optional<ReductionShape> reduction = {};  ///< of one that mpress serves
  Numbers result_counts = {};  ///< of MPI_Reduce_scatter: the items that each rank gets

  // Words that members have exchanged:
  Codec codec = Codec::none;   ///< of their specs; `automatic`, where those differ
  bool encodes = false;        ///< all of it may be encoded, and goes as blocks wherever it lies
  bool encodes_pairs = false;  ///< the same pair by pair
  bool on_devices = false;     ///< a member has had buffers there in calls of such sizes
};

}  // namespace mpress::engine
