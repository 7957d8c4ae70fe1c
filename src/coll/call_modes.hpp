// The modes of a team's collective calls: what members have agreed on at earlier calls, and go by
// at later ones. mpi/collectives/route.hpp alone sets them, call by call, for the call whose turn
// it is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "coll/selection.hpp"
#include "link/list.hpp"
#include "policy/methods.hpp"

namespace mpress::engine {

class CallModes {
 public:
  /// The mode of calls of like size: a program may have its fields on devices, and short sums in
  /// memory of the host beside them.
  struct Mode {
    bool has_devices = false;     ///< a member has had buffers there, as of the last agreement
    bool has_had_device = false;  ///< this one has had any
    std::uint64_t calls = 0;      ///< at which members could agree on it
    AttemptsOfTeam attempts;
  };
  Mode& of(bool reduces, std::size_t bytes) {
    constexpr int bits_a_class = 3;
    const auto size = static_cast<std::size_t>(std::bit_width(bytes) / bits_a_class);
    return modes_[std::min(size, sizes - 1) * 2 + reduces];
  }

  /// The link of data on devices between members of one host, as of the last agreement: of all
  /// pairs' the slowest.
  link::Kind between_devices() const { return between_devices_; }

  /// Does that link have memory in which kernels of all these members may work together?
  bool has_memory_of_all() const {
    const link::Attributes* const about = link::attributes_of(between_devices_);
    return about && about->is_memory;
  }

  /// By a new link algorithms are offered anew, in calls of all sizes.
  void set_between_devices(link::Kind kind) {
    if (kind == between_devices_) return;
    for (Mode& mode : modes_) mode.attempts = {};
    between_devices_ = kind;
  }

  /// The schedules of its calls, by their costs.
  policy::MethodChoice& method_choice() const { return method_choice_; }

 private:
  static constexpr std::size_t sizes = 16;
  std::array<Mode, 2 * sizes> modes_;
  link::Kind between_devices_ = link::kind_at(0);
  mutable policy::MethodChoice method_choice_;
};

}  // namespace mpress::engine
