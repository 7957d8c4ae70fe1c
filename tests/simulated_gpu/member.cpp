#include "member.hpp"

#include "memory.hpp"
#include "simulated_gpu.h"

namespace mpress::simulated {
namespace {

thread_local int own = 0;
std::atomic<int> last{0};

}  // namespace

int own_member() { return own; }
int last_member() { return last; }

void be_member(int member) {
  if (member < 0 || member >= most_members) fault("there is no member %d", member);
  own = member;
  for (int known = last; known < member && !last.compare_exchange_weak(known, member);) {
  }
}

}  // namespace mpress::simulated

extern "C" void sim_be_member(int member) { mpress::simulated::be_member(member); }
