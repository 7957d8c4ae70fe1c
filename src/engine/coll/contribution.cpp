#include "engine/coll/contribution.hpp"

#include <optional>

#include "codec/float_environment.hpp"
#include "core/staging.hpp"
#include "engine/coll/route.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/send.hpp"
#include "mpi/objects/type_info.hpp"

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

/// Calls `use` with the part as a message to that member; its answer, or nothing for handles that
/// have ended.
template <typename Use>
auto as_message(Job& job, const Collective& call, const Contribution& what, const Team& team,
                bool raw_by_kernels,
                Use use) -> std::optional<decltype(use(std::declval<const Message&>()))> {
  const Part& part = what.part;
  const auto type = mpi::type_info(part.type);
  const auto comm = mpi::comm_info(comm_of(team));
  if (!type || !comm) return std::nullopt;
  SendArguments arguments{part.data, part.count, part.type, hardest_to_reach(team), comm_of(team)};
  arguments.spec = what.spec;
  SendCall sending{trace::Called{call.op}, call.family, true};
  sending.raw_by_kernels = raw_by_kernels;
  const Location place = locate(job, part.data, *type);
  return use(message_of(sending, arguments, *type, *comm, comm->world_rank(arguments.destination),
                        part.bytes, place));
}

}  // namespace

bool would_encode(Job& job, const Collective& call, const Contribution& what, const Team& team,
                  bool raw_by_kernels) {
  if (what.spec.codec == Codec::none || what.part.bytes == 0) return false;
  const auto encodes = [&](const Message& message) {
    // Kernels refuse memory of the host, and then the question is another one.
    if (raw_by_kernels && message.device == gpu::host) return false;
    return choose(job, message, false).spec.codec != Codec::none;
  };
  return as_message(job, call, what, team, raw_by_kernels, encodes).value_or(false);
}

void learn_ratio(Job& job, const Collective& call, const Contribution& what, const Team& team,
                 std::size_t raw_bytes, std::size_t wire_bytes) {
  if (raw_bytes == 0) return;
  as_message(job, call, what, team, false, [&](const Message& message) {
    const auto wire_of_part = compute([&] {
      return static_cast<std::size_t>(static_cast<double>(message.bytes) *
                                      static_cast<double>(wire_bytes) /
                                      static_cast<double>(raw_bytes));
    });
    job.policy.encoded(subject_of(job, message, what.spec.codec), wire_of_part, 0);
    return true;
  });
}

}  // namespace mpress::engine
