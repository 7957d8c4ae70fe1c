// Algorithms whose data goes as messages of mpress's, and MPI's own.

#include "coll/algorithms/algorithms.hpp"

namespace mpress::engine {

const Algorithm reduction_by_blocks{
    "reduction by blocks", [](const AgreedCall& call) -> WhyNot {
      return call.call.reduces ? why_no_blocks(call) : "no reduction";
    }};

const Algorithm neighbours{"neighbours", [](const AgreedCall& call) -> WhyNot {
                             return call.has_topology ? why_no_blocks(call) : "no neighbourhood";
                           }};

const Algorithm blocks{"blocks", [](const AgreedCall& call) -> WhyNot {
                         return why_no_blocks(call);
                       }};

const Algorithm pairs{"long pairs", [](const AgreedCall& call) -> WhyNot {
                        if (!call.call.has_own_counts) return "all members know all counts";
                        return call.encodes_pairs ? nullptr : "compression does not pay";
                      }};

const Algorithm by_mpi{"mpi", [](const AgreedCall&) -> WhyNot { return nullptr; }};

}  // namespace mpress::engine
