// Messages that land in memory which their receiver has given the sender: when it is given, what
// has room there, and senders that have no memory of their own or cannot open what they are given.

#include <cstdlib>
#include <memory>
#include <vector>

#include "peer_link_ends.hpp"

using namespace mpress;
using link::HostMemory;
using link::PeerSegment;

namespace {

/// As far as the receiver has given this process memory for it.
void lands(const Line& line) {
  End end(line, sender);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  Transfer transfer;
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 0, transfer));  // they have not met
  introduce(link, line, 0);
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 0, transfer));  // but it has asked
  CHECK(reserve(link, receiver, 0, 1, bytes, 0, transfer));
  link.fail(transfer);
  link.cancel(0);
  line.tell();
  line.wait();  // given
  CHECK(!reserve_at(peer, receiver, 0, 1, limit + 1, 0, transfer));
  CHECK(!reserve_at(peer, 5, 0, 1, bytes, 0, transfer));
  transfer = {};
  std::vector<Transfer> transfers(5);
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(reserve_at(peer, receiver, 0, 2, bytes, i, transfers[i]));
    fill(line, link, *queue, transfers[i], 10 * i);
  }
  // It is full, and the limit leaves no more; nobody waits for that.
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 5, transfer) && transfer.chunks == 0);
  CHECK(reserve(link, receiver, 0, 2, bytes, 5, transfer));
  fill(line, link, *queue, transfer, 50);
  line.tell();
  line.wait();  // the third was taken, and half of the fourth
  CHECK(reserve_at(peer, receiver, 0, 2, bytes, 6, transfer));
  CHECK(transfer.place(0) == transfers[2].place(0));
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 7, transfers[2]));
  link.lay_out(transfer);
  link.cancel(6);
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 7, transfers[2]));  // not failed yet
  link.fail(transfer);
  CHECK(reserve_at(peer, receiver, 1, 2, bytes, 7, transfer));  // from another device
  const std::unique_ptr<Queue> other = gpu::gpu()->open_queue(1);
  fill(line, link, *other, transfer, 60);
  line.wait();
  end.finish(line);
}

void receives_near(const Line& line) {
  End end(line, receiver);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  open_what_is_shared(link, line, 1);
  line.wait();
  link.connect(sender, 1);
  link.connect(sender, 0);  // it has asked once
  line.tell();
  std::vector<Transfer> transfers(6);
  for (unsigned i = 0; i < 6; ++i) {
    CHECK(line.receive(transfers[i]));
    CHECK(link.lands_on(sender, at(transfers[i].first)) == (i < 5 ? 1 : gpu::host));
    CHECK(peer.look(sender, transfers[i].first, 1).is_near == (i < 5));
    check_arrival(peer, transfers[i], i < 5 ? 1 : 0, 10 * i);
  }
  // Whichever device asks, it lies where it lies.
  CHECK(peer.look(sender, transfers[0].first, 0).device == 1);
  line.wait();
  peer.acknowledge(sender, transfers[2].first);
  peer.acknowledge(sender, transfers[2].first + 1);
  peer.acknowledge(sender, transfers[3].first);
  line.tell();
  CHECK(line.receive(transfers[2]));
  check_arrival(peer, transfers[2], 1, 60);
  line.tell();
  end.finish(line);
}

/// A sender that has no memory of its own to share.
void lands_only(const Line& line) {
  End end(line, sender);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  Transfer transfer;
  line.wait();  // met
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 0, transfer));
  line.tell();
  line.wait();  // given
  CHECK(reserve_at(peer, receiver, 0, 2, bytes, 0, transfer));
  fill(line, link, *gpu::gpu()->open_queue(0), transfer, 70);
  line.wait();
  end.finish(line);
}

void receives_without_a_slab(const Line& line) {
  End end(line, receiver);
  end.link.connect(sender, 0);
  line.tell();
  line.wait();
  end.link.connect(sender, 0);
  line.tell();
  Transfer transfer;
  CHECK(line.receive(transfer));
  check_arrival(end.peer, transfer, 0, 70);
  line.tell();
  end.finish(line);
}

/// A sender that cannot open what it is given asks once, and keeps to its own memory.
void cannot_land(const Line& line) {
  End end(line, sender);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  Transfer transfer;
  introduce(link, line, 0);
  CHECK(!reserve_at(peer, receiver, 0, 2, bytes, 0, transfer));
  line.tell();
  line.wait();
  ::setenv("SIMULATED_GPU_PEERS", "0", 1);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(!reserve_at(peer, receiver, 0, 4, bytes, i, transfer));
    CHECK(reserve(link, receiver, 0, 2, bytes, i, transfer));
  }
  line.tell();
  line.wait();
  end.finish(line);
}

void gives_once(const Line& line) {
  End end(line, receiver);
  open_what_is_shared(end.link, line, 0);
  line.wait();
  end.link.connect(sender, 0);
  const HostMemory memory = HostMemory::open(end.ranks[2].address.as<HostMemory::Address>(), nonce,
                                             sender, sizeof(PeerSegment));
  const auto* const segment = reinterpret_cast<const PeerSegment*>(memory.data());
  CHECK(segment->receive_staging_blocks[0].load() == 1);
  line.tell();
  line.wait();
  end.link.connect(sender, 0);
  CHECK(segment->receive_staging_blocks[0].load() == 1);
  line.tell();
  end.finish(line);
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  const char* const library = MPRESS_SIMULATED_GPU;
  run(library, lands, receives_near);
  run(library, lands_only, receives_without_a_slab);
  run(library, cannot_land, gives_once);
  return check::failures != 0;
}
