#include "coll/blocks/contribution.hpp"

#include "codec/float_environment.hpp"
#include "coll/blocks/envelope.hpp"
#include "coll/call.hpp"
#include "coll/team.hpp"
#include "core/staging.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

/// A member of another host, where there is one.
int hardest_to_reach(const Team& team) {
  const int me = team.rank();
  int peer = me == 0 ? 1 : 0;
  for (int other = 0; other < team.size(); ++other) {
    if (!team.share_host(me, other)) peer = other;
  }
  return peer;
}

/// Calls `use` with the contribution as a message to that member, and returns its answer.
template <typename Use>
auto as_message(Messaging& messaging, const Collective& call, const Contribution& what,
                const Team& team, bool raw_by_kernels, Use use) {
  SendCall sending{trace::Called{call.op}, call.family, true};
  sending.raw_by_kernels = raw_by_kernels;
  const Location place = locate(messaging, what.data.data, *what.data.layout);
  Message message = block_message(sending, what.data, team.settings(), place);
  message.peer = team.world_rank(hardest_to_reach(team));
  message.asked = what.spec;
  return use(message);
}

}  // namespace

bool would_encode(Messaging& messaging, const Collective& call, const Contribution& what,
                  const Team& team, bool raw_by_kernels) {
  if (what.spec.codec == Codec::none || what.data.bytes == 0) return false;
  const auto encodes = [&](const Message& message) {
    // Kernels refuse memory of the host, and then the question is another one.
    if (raw_by_kernels && message.device == gpu::host) return false;
    return choose(messaging, message, false).spec.codec != Codec::none;
  };
  return as_message(messaging, call, what, team, raw_by_kernels, encodes);
}

void learn_ratio(Messaging& messaging, const Collective& call, const Contribution& what,
                 const Team& team, std::size_t raw_bytes, std::size_t wire_bytes) {
  if (raw_bytes == 0 || what.data.bytes == 0) return;
  as_message(messaging, call, what, team, false, [&](const Message& message) {
    const auto wire_of_part = compute([&] {
      return static_cast<std::size_t>(static_cast<double>(message.bytes) *
                                      static_cast<double>(wire_bytes) /
                                      static_cast<double>(raw_bytes));
    });
    messaging.policy.encoded(subject_of(messaging, message, what.spec.codec), wire_of_part, 0);
  });
}

}  // namespace mpress::engine
