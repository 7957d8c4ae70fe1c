// The peer link between two processes with simulated GPUs: what is shared and opened, when memory
// comes free, and what a receiver makes of slots that are not what they should be.

#include "link/peer/peer_link.hpp"

#include <sched.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "peer_link_ends.hpp"

using namespace mpress;
using link::HostMemory;
using link::PeerSegment;

namespace {

void sends(const Line& line) {
  End end(line, sender);
  Link& link = end.link;
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  CHECK(!link.reaches(receiver) && !link.reaches(sender) && !link.reaches(5) && !link.reaches(-1));
  CHECK(link.may_reach(receiver) && !link.may_reach(sender) && !link.may_reach(5));
  Transfer transfer;
  CHECK(!reserve(link, 5, 0, 1, bytes, 0, transfer) &&
        !reserve(link, 99, 0, 1, bytes, 0, transfer));
  introduce(link, line, 0);
  CHECK(link.reaches(receiver));
  CHECK(!reserve(link, receiver, 0, 1, limit + 1, 0, transfer));
  CHECK(!reserve(link, receiver, 0, PeerSegment::most_slots + 1, 256, 0, transfer));
  CHECK(transfer.chunks == 0);

  // Five times two chunks fit; then no more until one of them was taken.
  std::vector<Transfer> transfers(5);
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(reserve(link, receiver, 0, 2, bytes, i, transfers[i]));
    fill(line, link, *queue, transfers[i], 10 * i);
  }
  CHECK(!reserve(link, receiver, 0, 2, bytes, 5, transfer));
  CHECK(transfer.chunks == 0);  // nobody can take it for one
  line.tell();
  line.wait();  // the third was taken, and half of the fourth
  CHECK(reserve(link, receiver, 0, 2, bytes, 5, transfer));
  CHECK(transfer.place(0) == transfers[2].place(0));
  CHECK(!reserve(link, receiver, 0, 2, bytes, 6, transfers[2]));

  // What was announced and failed: the receiver is told of chunks that are not there.
  link.lay_out(transfer);
  put(*queue, transfer.place(0), noise(bytes, 50).data(), bytes);
  link.publish(transfer, 0, bytes);
  link.fail(transfer);
  line.send(transfer);
  line.wait();  // taken
  CHECK(reserve(link, receiver, 0, 2, bytes, 6, transfer));
  link.lay_out(transfer);
  link.fail(transfer);
  link.cancel(6);
  CHECK(reserve(link, receiver, 0, 2, bytes, 7, transfer));
  link.lay_out(transfer);
  link.cancel(7);  // and not failed: something may still be written there
  CHECK(!reserve(link, receiver, 0, 2, bytes, 8, transfers[2]));
  link.fail(transfer);
  CHECK(reserve(link, receiver, 0, 2, bytes, 8, transfer));
  link.fail(transfer);
  end.finish(line);
}

void receives(const Line& line) {
  End end(line, receiver);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  look_for_what_is_shared(line, [&] {
    CHECK(!knows(link, sender, 0, 1));  // nor after the first look, when nothing was shared
    link.connect(sender, 1);
  });
  CHECK(knows(link, sender, 0, 1) && knows(link, sender, 0, PeerSegment::most_slots));
  CHECK(!knows(link, sender, 1, PeerSegment::most_slots) && !knows(link, sender, ~0ull, 2));
  CHECK(!knows(link, 5, 0, 1) && !knows(link, receiver, 0, 1) && !knows(link, -1, 0, 1));
  std::vector<Transfer> transfers(5);
  const int devices[] = {1, 0, gpu::host, 0, 1};
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(line.receive(transfers[i]));
    check_arrival(peer, transfers[i], devices[i], 10 * i);
  }
  CHECK(peer.is_used());
  line.wait();
  peer.acknowledge(sender, transfers[2].first);
  peer.acknowledge(sender, transfers[2].first + 1);
  peer.acknowledge(sender, transfers[3].first);
  line.tell();

  Transfer failed;
  CHECK(line.receive(failed));
  CHECK(peer.look(sender, failed.first, 1).state == Slot::there);
  CHECK(peer.look(sender, failed.first + 1, 1).state == Slot::failed);
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) peer.acknowledge(sender, failed.first + chunk);
  line.tell();
  end.finish(line);
  CHECK(!knows(link, sender, 0, 1));
}

/// Slots that no staging holds, and segments that are not what their address says.
void misleads(const Line& line) {
  End end(line, sender);
  introduce(end.link, line, 0);
  line.wait();
  end.finish(line);
}

void is_not_misled(const Line& line) {
  End end(line, receiver);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  link::Gets& gets = end.peer.gets();
  open_what_is_shared(link, line, 0);
  const HostMemory::Address address = end.ranks.back().address.as<HostMemory::Address>();
  auto other_nonce = nonce;
  other_nonce[15] = 1;
  const auto open = [](const HostMemory::Address& at, const HostMemory::Nonce& job, int rank) {
    return HostMemory::open(at, job, rank, sizeof(PeerSegment));
  };
  CHECK(!open(address, other_nonce, sender));
  CHECK(!open(address, nonce, receiver));
  CHECK(!open({address.pid, 0}, nonce, sender));
  CHECK(!open({address.pid, 12345}, nonce, sender));
  CHECK(!open({-1, address.file}, nonce, sender));
  const HostMemory memory = open(address, nonce, sender);
  CHECK(static_cast<bool>(memory));
  auto* const segment = reinterpret_cast<PeerSegment*>(memory.data());
  CHECK(peer.look(sender, 3, 0).state == Slot::planned);
  const std::uint64_t size = segment->staging[0].bytes;
  const struct {
    std::uint32_t staging;
    std::uint64_t offset, bytes;
    bool is_right;
  } cases[] = {{0, 0, size, true},       {0, size, 0, true},      {1, 0, 8, false},
               {~0u, 0, 8, false},       {0, 8, size, false},     {0, size + 8, 8, false},
               {0, 8, ~0ull - 4, false}, {0, ~0ull - 4, 8, false}};
  for (const auto& lie : cases) {
    Slot& slot = segment->slot[3];
    slot.staging = lie.staging, slot.offset = lie.offset, slot.report.bytes = lie.bytes;
    slot.reported_by = 3, slot.report.sequence = 1;
    const auto state = peer.look(sender, 3, 0).state;
    CHECK(state == (lie.is_right ? Slot::there : Slot::failed));
  }
  for (const std::uint16_t receive_staging : {1, 2, 0xFFFF}) {  // nothing has landed here
    Slot& slot = segment->slot[3];
    slot.receive_staging = receive_staging, slot.offset = 0, slot.report.bytes = 8;
    CHECK(peer.look(sender, 3, 0).state == Slot::failed);
    CHECK(link.lands_on(sender, at(3)) == gpu::host);
    slot.receive_staging = 0;
  }
  segment->slot[3].reported_by = PeerSegment::most_slots;
  CHECK(peer.look(sender, 3, 0).state == Slot::planned);
  segment->slot[3].reported_by = 4;  // by one of which nothing is told
  CHECK(peer.look(sender, 3, 0).state == Slot::planned);
  const struct {
    std::uint32_t block;
    std::uint64_t within;
  } false_offers[] = {{0, 0}, {1, 0}, {1, ~0ull}, {~0u, 0}};
  for (const auto& lie : false_offers) {  // no block is shared
    Slot& slot = segment->slot[3];
    slot.block = lie.block, slot.within = lie.within;
    slot.state.store(Slot::offered);
    CHECK(gets.get(sender, 3, 0, 8).state == Slot::failed);
    gets.open_block(sender, lie.block, 0);
  }
  line.tell();
  end.finish(line);
}

/// Threads that all find the same new memory open it once: the simulated GPUs tell otherwise.
void shares_again(const Line& line) {
  End end(line, sender);
  for (int device = 0; device < 2; ++device) introduce(end.link, line, device);
  end.finish(line);
}

void meets_in_threads(const Line& line) {
  End end(line, receiver);
  for (int device = 0; device < 2; ++device) {
    look_for_what_is_shared(line, [&] {
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] { end.link.connect(sender, i % 2); });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }
  end.finish(line);
}

void ends(const Line& line) {
  End end(line, sender);
  line.wait();
}

void survives(const Line& line) {
  End end(line, receiver);
  CHECK(end.link.lives(sender));
  line.tell();
  while (end.link.lives(sender)) ::sched_yield();
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  const char* const library = MPRESS_SIMULATED_GPU;
  run(library, sends, receives);
  run(library, misleads, is_not_misled);
  run(library, shares_again, meets_in_threads);
  run(library, ends, survives);
  return check::failures != 0;
}
