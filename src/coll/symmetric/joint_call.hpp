// A call on data of a host's devices that one kernel a member makes, each of which waits on its
// device for those of the others. Members offer it to each other at each call.
#pragma once

#include "coll/offered_call.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/joint_memory.hpp"
#include "coll/symmetric/moved.hpp"
#include "coll/team.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {

/// What kernels of a call of such a team reach; for the call whose turn it is.
inline const policy::Reach& reach_of(const Team& team) {
  return reach_of(team.modes().between_devices());
}

class JointCall : public OfferedCall {
 public:
  trace::Called called() const override {
    return {call_.op, static_cast<std::uint8_t>(schedule::Algorithm::one_kernel)};
  }

 protected:
  using OfferedCall::OfferedCall;
  /// Of an offer: whether it can, its device, the routes to its memory, how much room that has, and
  /// of the call what members may differ in.
  static_assert(words == 4 + JointMemory::words);

  /// Of a call that went well, by a link: counts the bytes that each other member got, to(member),
  /// and that came of it, from(member).
  template <class To, class From>
  void count(trace::Way way, To to, From from) const {
    for (int member = 0; member < team_.size() && status_.is_ok(); ++member) {
      if (member == team_.rank()) continue;
      count_by_kernel(messaging_, called(), way, team_.world_rank(member), to(member),
                      from(member));
    }
  }
};

}  // namespace mpress::engine
