// Every link between threads of this process.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "core/links.hpp"
#include "links/conformance.hpp"
#include "loopback/loopback.hpp"
#include "simulated_gpu/simulated_gpu.h"

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

template <class By>
void by_memory(unsigned seed) {
  loopback::run(members, seed, [](loopback::ThreadMember& member) {
    sim_be_member(member.rank);
    By end(member);
    links::conforms(end);
    CHECK(sim_held(0) == 0);
  });
}

/// Memory of one member's devices is none to another.
void apart() {
  links::choose_simulated_gpu();
  void* const own = sim_malloc(0, 100);
  std::thread([own] {
    sim_be_member(1);
    CHECK(gpu::gpu()->locate(own) == gpu::host);
    void* const others = sim_malloc(0, 100);
    CHECK(gpu::gpu()->locate(others) == 0);
    sim_free(others);
  }).join();
  CHECK(gpu::gpu()->locate(own) == 0);
  sim_free(own);
}

/// Kernels of all members work in memory of the very link that reaches them all.
void memory_of_each() {
  engine::Links links;
  for (const link::Attributes& one : link::between_devices) {
    const link::MemoryLink* const memory = links.memory_link(one.kind);
    CHECK((memory != nullptr) == one.is_memory);
    CHECK(!memory || (memory == links.find(one.kind) && memory->kind() == one.kind));
  }
  CHECK(links.memory_link(link::Kind::peer) == &links.peer);
  CHECK(links.memory_link(link::Kind::host) == &links.host);
  CHECK(!links.memory_link(link::Kind::channel));
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

/// A sender by a link's memory that is gone. What it held is given back when all are.
template <class By>
void lost_sender(unsigned seed) {
  std::array<std::unique_ptr<By>, members> ends;
  loopback::run(members, seed, [&](loopback::ThreadMember& member) {
    sim_be_member(member.rank);
    auto& end = ends[static_cast<std::size_t>(member.rank)];
    end = std::make_unique<By>(member);
    links::loses_sender(*end);
  });
  const auto as_each = [&](auto act) {
    for (int member = 0; member < members; ++member) {
      sim_be_member(member);
      act(*ends[static_cast<std::size_t>(member)]);
    }
  };
  as_each([](By& end) { end.close_link(); });
  as_each([](By& end) { end.free_memory(); });
  CHECK(sim_held(0) == 0);
  sim_be_member(0);
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  apart();
  memory_of_each();
  for (unsigned seed = 1; seed <= 3 && check::failures == 0; ++seed) {
    by_channel(seed);
    by_memory<links::ByPeer>(seed);
    by_memory<links::ByHost>(seed);
    lost_member(seed);
    if (check::failures > 0) std::fprintf(stderr, "seed %u\n", seed);
  }
  // Once each, as readers wait for seconds until they take a sender for lost.
  lost_sender<links::ByPeer>(1);
  lost_sender<links::ByHost>(2);
  return check::failures != 0;
}
