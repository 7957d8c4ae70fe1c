// The peer link between two processes with simulated GPUs: what is shared and opened, when memory
// comes free, and what a receiver makes of parcels that are not what they should be.

#include "link/peer/peer_link.hpp"

#include <sched.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "peer_link_ends.hpp"

using namespace mpress;
using link::MappedSegment;
using link::PeerSegment;

namespace {

void sends(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  CHECK(!link.reaches(receiver) && !link.reaches(sender) && !link.reaches(5) && !link.reaches(-1));
  CHECK(link.may_reach(receiver) && !link.may_reach(sender) && !link.may_reach(5));
  Shipment shipment;
  CHECK(!link.reserve(5, 0, 1, bytes, 0, shipment) && !link.reserve(99, 0, 1, bytes, 0, shipment));
  introduce(link, line, 0);
  CHECK(link.reaches(receiver));
  CHECK(!link.reserve(receiver, 0, 1, limit + 1, 0, shipment));
  CHECK(!link.reserve(receiver, 0, PeerSegment::parcels + 1, 256, 0, shipment));
  CHECK(shipment.chunks == 0);

  // Five times two chunks fit; then no more until one of them was taken.
  std::vector<Shipment> shipments(5);
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(link.reserve(receiver, 0, 2, bytes, i, shipments[i]));
    fill(line, link, *queue, shipments[i], 10 * i);
  }
  CHECK(!link.reserve(receiver, 0, 2, bytes, 5, shipment));
  CHECK(shipment.chunks == 0);  // nobody can take it for one
  line.tell();
  line.wait();  // the third was taken, and half of the fourth
  CHECK(link.reserve(receiver, 0, 2, bytes, 5, shipment));
  CHECK(shipment.place(0) == shipments[2].place(0));
  CHECK(!link.reserve(receiver, 0, 2, bytes, 6, shipments[2]));

  // What was announced and failed: the receiver is told of chunks that are not there.
  link.lay_out(shipment);
  put(*queue, shipment.place(0), noise(bytes, 50).data(), bytes);
  link.publish(shipment, 0, bytes);
  link.fail(shipment);
  line.send(shipment);
  line.wait();  // taken
  CHECK(link.reserve(receiver, 0, 2, bytes, 6, shipment));
  link.lay_out(shipment);
  link.fail(shipment);
  link.cancel(6);
  CHECK(link.reserve(receiver, 0, 2, bytes, 7, shipment));
  link.lay_out(shipment);
  link.cancel(7);  // and not failed: something may still be written there
  CHECK(!link.reserve(receiver, 0, 2, bytes, 8, shipments[2]));
  link.fail(shipment);
  CHECK(link.reserve(receiver, 0, 2, bytes, 8, shipment));
  link.fail(shipment);
  end.finish(line);
}

void receives(const Line& line) {
  End end(line, receiver);
  PeerLink& link = end.link;
  look_for_what_is_shared(line, [&] {
    CHECK(!link.knows(sender, 0, 1));  // nor after the first look, when nothing was shared
    link.meet(sender, 1);
  });
  CHECK(link.knows(sender, 0, 1) && link.knows(sender, 0, PeerSegment::parcels));
  CHECK(!link.knows(sender, 1, PeerSegment::parcels) && !link.knows(sender, ~0ull, 2));
  CHECK(!link.knows(5, 0, 1) && !link.knows(receiver, 0, 1) && !link.knows(-1, 0, 1));
  std::vector<Shipment> shipments(5);
  const int devices[] = {1, 0, gpu::host, 0, 1};
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(line.receive(shipments[i]));
    check_arrival(link, shipments[i], devices[i], 10 * i);
  }
  CHECK(link.is_used());
  line.wait();
  link.take(sender, shipments[2].first);
  link.take(sender, shipments[2].first + 1);
  link.take(sender, shipments[3].first);
  line.tell();

  Shipment failed;
  CHECK(line.receive(failed));
  CHECK(link.look(sender, failed.first, 1).state == Parcel::there);
  CHECK(link.look(sender, failed.first + 1, 1).state == Parcel::failed);
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) link.take(sender, failed.first + chunk);
  line.tell();
  end.finish(line);
  CHECK(!link.knows(sender, 0, 1));
}

/// Parcels that no slab holds, and segments that are not what their address says.
void misleads(const Line& line) {
  End end(line, sender);
  introduce(end.link, line, 0);
  line.wait();
  end.finish(line);
}

void is_not_misled(const Line& line) {
  End end(line, receiver);
  PeerLink& link = end.link;
  open_what_is_shared(link, line, 0);
  const SegmentAddress address = end.ranks.back().segment;
  auto other_nonce = nonce;
  other_nonce[15] = 1;
  CHECK(!MappedSegment::open(address, other_nonce, sender));
  CHECK(!MappedSegment::open(address, nonce, receiver));
  CHECK(!MappedSegment::open({address.pid, 0}, nonce, sender));
  CHECK(!MappedSegment::open({address.pid, 12345}, nonce, sender));
  CHECK(!MappedSegment::open({-1, address.file}, nonce, sender));
  const MappedSegment segment = MappedSegment::open(address, nonce, sender);
  CHECK(static_cast<bool>(segment));
  CHECK(link.look(sender, 3, 0).state == Parcel::planned);
  const std::uint64_t size = segment->slab[0].bytes;
  const struct {
    std::uint32_t slab;
    std::uint64_t offset, bytes;
    bool is_right;
  } cases[] = {{0, 0, size, true},       {0, size, 0, true},      {1, 0, 8, false},
               {~0u, 0, 8, false},       {0, 8, size, false},     {0, size + 8, 8, false},
               {0, 8, ~0ull - 4, false}, {0, ~0ull - 4, 8, false}};
  for (const auto& lie : cases) {
    Parcel& parcel = segment->parcel[3];
    parcel.slab = lie.slab, parcel.offset = lie.offset, parcel.report.bytes = lie.bytes;
    parcel.told_by = 3, parcel.report.sequence = 1;
    const auto state = link.look(sender, 3, 0).state;
    CHECK(state == (lie.is_right ? Parcel::there : Parcel::failed));
  }
  for (const std::uint32_t landing : {1u, 2u, ~0u}) {  // nothing has landed here
    Parcel& parcel = segment->parcel[3];
    parcel.landing = landing, parcel.offset = 0, parcel.report.bytes = 8;
    CHECK(link.look(sender, 3, 0).state == Parcel::failed);
    CHECK(link.lands_on(sender, 3) == gpu::host);
    parcel.landing = 0;
  }
  segment->parcel[3].told_by = PeerSegment::parcels;
  CHECK(link.look(sender, 3, 0).state == Parcel::planned);
  segment->parcel[3].told_by = 4;  // by one of which nothing is told
  CHECK(link.look(sender, 3, 0).state == Parcel::planned);
  const struct {
    std::uint32_t block;
    std::uint64_t within;
  } false_offers[] = {{0, 0}, {1, 0}, {1, ~0ull}, {~0u, 0}};
  for (const auto& lie : false_offers) {  // no block is shared
    Parcel& parcel = segment->parcel[3];
    parcel.block = lie.block, parcel.within = lie.within;
    parcel.state.store(Parcel::offered);
    CHECK(link.borrow(sender, 3, 0, 8).state == Parcel::failed);
    link.open_block(sender, lie.block, 0);
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
        threads.emplace_back([&, i] { end.link.meet(sender, i % 2); });
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
