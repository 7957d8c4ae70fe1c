// An algorithm of the tests' own: MPI's call on the team's private communicator.

#include "coll/algorithms/conditions.hpp"

namespace mpress::engine {

const Algorithm dummy{"dummy", [](const AgreedCall& call) -> WhyNot {
                        if (call.call.op != trace::Op::alltoall) return other_kind;
                        if (call.on_devices) return "GPU buffers";
                        return why_no_blocks(call);
                      }};

}  // namespace mpress::engine
