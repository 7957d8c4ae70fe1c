// Messages that land in memory which their receiver has given the sender: when it is given, what
// has room there, and senders that have no memory of their own or cannot open what they are given.

#include <cstdlib>
#include <memory>
#include <vector>

#include "peer_link_ends.hpp"

using namespace mpress;
using link::MappedSegment;

namespace {

/// As far as the receiver has given this process memory for it.
void lands(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  Shipment shipment;
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 0, shipment));  // they have not met
  introduce(link, line, 0);
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 0, shipment));  // but it has asked
  CHECK(link.reserve(receiver, 0, 1, bytes, 0, shipment));
  link.fail(shipment);
  link.cancel(0);
  line.tell();
  line.wait();  // given
  CHECK(!link.reserve_landing(receiver, 0, 1, limit + 1, 0, shipment));
  CHECK(!link.reserve_landing(5, 0, 1, bytes, 0, shipment));
  shipment = {};
  std::vector<Shipment> shipments(5);
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(link.reserve_landing(receiver, 0, 2, bytes, i, shipments[i]));
    fill(line, link, *queue, shipments[i], 10 * i);
  }
  // It is full, and the limit leaves no more; nobody waits for that.
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 5, shipment) && shipment.chunks == 0);
  CHECK(link.reserve(receiver, 0, 2, bytes, 5, shipment));
  fill(line, link, *queue, shipment, 50);
  line.tell();
  line.wait();  // the third was taken, and half of the fourth
  CHECK(link.reserve_landing(receiver, 0, 2, bytes, 6, shipment));
  CHECK(shipment.place(0) == shipments[2].place(0));
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 7, shipments[2]));
  link.lay_out(shipment);
  link.cancel(6);
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 7, shipments[2]));  // not failed yet
  link.fail(shipment);
  CHECK(link.reserve_landing(receiver, 1, 2, bytes, 7, shipment));  // from another device
  const std::unique_ptr<Queue> other = gpu::gpu()->open_queue(1);
  fill(line, link, *other, shipment, 60);
  line.wait();
  end.finish(line);
}

void receives_near(const Line& line) {
  End end(line, receiver);
  PeerLink& link = end.link;
  open_what_is_shared(link, line, 1);
  line.wait();
  link.meet(sender, 1);
  link.meet(sender, 0);  // it has asked once
  line.tell();
  std::vector<Shipment> shipments(6);
  for (unsigned i = 0; i < 6; ++i) {
    CHECK(line.receive(shipments[i]));
    CHECK(link.lands_on(sender, shipments[i].first) == (i < 5 ? 1 : gpu::host));
    CHECK(link.look(sender, shipments[i].first, 1).is_landed == (i < 5));
    check_arrival(link, shipments[i], i < 5 ? 1 : 0, 10 * i);
  }
  // Whichever device asks, it lies where it lies.
  CHECK(link.look(sender, shipments[0].first, 0).device == 1);
  line.wait();
  link.take(sender, shipments[2].first);
  link.take(sender, shipments[2].first + 1);
  link.take(sender, shipments[3].first);
  line.tell();
  CHECK(line.receive(shipments[2]));
  check_arrival(link, shipments[2], 1, 60);
  line.tell();
  end.finish(line);
}

/// A sender that has no memory of its own to share.
void lands_only(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  Shipment shipment;
  line.wait();  // met
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 0, shipment));
  line.tell();
  line.wait();  // given
  CHECK(link.reserve_landing(receiver, 0, 2, bytes, 0, shipment));
  fill(line, link, *gpu::gpu()->open_queue(0), shipment, 70);
  line.wait();
  end.finish(line);
}

void receives_without_a_slab(const Line& line) {
  End end(line, receiver);
  end.link.meet(sender, 0);
  line.tell();
  line.wait();
  end.link.meet(sender, 0);
  line.tell();
  Shipment shipment;
  CHECK(line.receive(shipment));
  check_arrival(end.link, shipment, 0, 70);
  line.tell();
  end.finish(line);
}

/// A sender that cannot open what it is given asks once, and keeps to its own memory.
void cannot_land(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  Shipment shipment;
  introduce(link, line, 0);
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 0, shipment));
  line.tell();
  line.wait();
  ::setenv("SIMULATED_GPU_PEERS", "0", 1);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(!link.reserve_landing(receiver, 0, 4, bytes, i, shipment));
    CHECK(link.reserve(receiver, 0, 2, bytes, i, shipment));
  }
  line.tell();
  line.wait();
  end.finish(line);
}

void gives_once(const Line& line) {
  End end(line, receiver);
  open_what_is_shared(end.link, line, 0);
  line.wait();
  end.link.meet(sender, 0);
  const MappedSegment segment = MappedSegment::open(end.ranks[2].segment, nonce, sender);
  CHECK(segment->landings[0].load() == 1);
  line.tell();
  line.wait();
  end.link.meet(sender, 0);
  CHECK(segment->landings[0].load() == 1);
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
