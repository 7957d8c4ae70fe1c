// Algorithms whose data goes as messages of mpress's, and MPI's own.

#include "coll/algorithms/conditions.hpp"

namespace mpress::engine {

const Algorithm reduction_by_blocks{"reduction by blocks", [](const AgreedCall& call) -> WhyNot {
                                      return call.call.reduces ? why_no_blocks(call) : other_kind;
                                    }};

const Algorithm neighbours{"neighbours", [](const AgreedCall& call) -> WhyNot {
                             return call.has_topology ? why_no_blocks(call) : other_kind;
                           }};

const Algorithm blocks{"blocks",
                       [](const AgreedCall& call) -> WhyNot { return why_no_blocks(call); }};

const Algorithm pairs{"long pairs", [](const AgreedCall& call) -> WhyNot {
                        if (!call.call.has_own_counts) return other_kind;
                        return call.encodes_pairs ? nullptr : does_not_pay;
                      }};

const Algorithm by_mpi{"mpi", [](const AgreedCall&) -> WhyNot { return nullptr; }};

}  // namespace mpress::engine
