// A reduction whose inputs members read in slots of the peer link: in how many shots.
#pragma once

#include "coll/call.hpp"
#include "policy/linked.hpp"

namespace mpress::engine {

/// A member that wants a piece alone, or alone wants all, reads no more in one shot than in two.
policy::Shots linked_shots_of(const AgreedCall& call);

}  // namespace mpress::engine
