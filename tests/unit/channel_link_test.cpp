// The link over a channel, between threads of this process.

#include <cstdio>

#include "links/conformance.hpp"
#include "loopback/loopback.hpp"

using namespace mpress;

namespace {

constexpr int members = 3;

void by_channel(unsigned seed) {
  loopback::Group group(members, seed);
  loopback::run(members, seed, [&](loopback::ThreadMember& member) {
    links::ByChannel end(member, group.channel(member.rank));
    links::conforms(end);
  });
  CHECK(group.unclaimed() == 0);  // the shutdown has drained what nobody asked for
}

/// A member that is gone: its reader finds that out, and senders to it are not held up.
void lost_member(unsigned seed) {
  loopback::Group group(2, seed);
  std::byte data[100]{};
  std::byte place[100]{};
  link::Channel::Pending from = group.channel(0).receive(place, sizeof place, 1, 7);
  link::Channel::Pending to = group.channel(0).send(data, sizeof data, 1, 7);
  CHECK(group.channel(0).poll(from) == gpu::State::pending);
  group.end(1);
  CHECK(group.channel(0).poll(from) == gpu::State::failed);
  CHECK(group.channel(0).poll(to) == gpu::State::done);
}

}  // namespace

int main() {
  for (unsigned seed = 1; seed <= 6 && check::failures == 0; ++seed) {
    by_channel(seed);
    lost_member(seed);
    if (check::failures > 0) std::fprintf(stderr, "seed %u\n", seed);
  }
  return check::failures != 0;
}
