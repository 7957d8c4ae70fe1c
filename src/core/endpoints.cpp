#include "core/endpoints.hpp"

#include <sched.h>
#include <unistd.h>

namespace mpress::engine {

bool Endpoints::are_oversubscribed() const {
  cpu_set_t set;
  const int allowed = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  // Launchers bind ranks to a processor each where there are enough.
  const long processors = allowed > 1 ? allowed : ::sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<long>(of_host_.size()) > processors;
}

int Endpoints::find_ended() const {
  for (const link::RankProcess& one : of_host_) {
    if (!link::is_alive(one.process)) return one.rank;
  }
  return -1;
}

}  // namespace mpress::engine
