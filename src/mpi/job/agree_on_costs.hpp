// The costs of links that all ranks agree on in MPI_Init.
#pragma once

#include "policy/agreed_costs.hpp"

namespace mpress::engine {

class Job;
class Team;

/// Collective over MPI_COMM_WORLD, whose team `world` is; waits.
policy::AgreedCosts agree_on_costs(const Job& job, const Team& world);

}  // namespace mpress::engine
