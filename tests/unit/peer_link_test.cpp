// The peer link between two processes with simulated GPUs: what is shared and opened, when memory
// comes free, and what a receiver makes of parcels that are not what they should be.

#include "link/peer_link.hpp"

#include <sched.h>

#include <cstring>
#include <thread>
#include <vector>

#include "check.hpp"
#include "lanes.hpp"
#include "processes.hpp"

using namespace mpress;
using gpu::Place;
using link::HostRank;
using link::MappedSegment;
using link::Parcel;
using link::PeerLink;
using link::PeerSegment;
using link::SegmentAddress;
using link::Shipment;

namespace {

constexpr std::array<std::uint8_t, 16> nonce = {1, 2, 3};
constexpr std::size_t limit = 40 << 20;  // one slab of 32 MiB, and little more
constexpr std::size_t bytes = 3 << 20;   // of a chunk
constexpr int sender = 7, receiver = 4;  // ranks, of which one runs elsewhere

/// A process's end of the link, which knows the other's.
struct End {
  PeerLink link;
  std::vector<HostRank> ranks;

  End(const Line& line, int rank) {
    const SegmentAddress own = link.open(nonce, rank, true);
    SegmentAddress other;
    line.send(own);
    CHECK(line.receive(other));
    const bool sends = rank == sender;
    ranks = {{receiver, sends ? other : own}, {5, {}}, {sender, sends ? own : other}};
    link.meet_host(ranks, limit);
  }

  /// Both have done with everything.
  void finish(const Line& line) {
    link.close();
    line.tell();
    line.wait();
    link.release();
  }
};

/// Shares a slab, and waits until it has been opened. For somebody who has never looked at this one
/// nothing is shared.
void introduce(PeerLink& link, const Line& line, int device) {
  const bool knows = link.reaches(receiver);
  line.send(knows);
  Shipment shipment;
  for (int round = knows ? 1 : 0; round < 2; ++round) {
    CHECK(!link.reserve(receiver, device, 1, bytes, 0, shipment));
    line.tell();
    line.wait();
    CHECK(link.reaches(receiver) == (round == 1));
  }
}

/// Answers introduce(): calls `meet` when there may be something new.
template <class Meet>
void look_for_what_is_shared(const Line& line, Meet meet) {
  bool is_known = false;
  CHECK(line.receive(is_known));
  for (int round = is_known ? 1 : 0; round < 2; ++round) {
    line.wait();
    meet();
    line.tell();
  }
}

void open_what_is_shared(PeerLink& link, const Line& line, int device) {
  look_for_what_is_shared(line, [&] { link.meet(sender, device); });
}

void fill(const Line& line, PeerLink& link, Lane& lane, const Shipment& shipment, unsigned seed) {
  link.lay_out(shipment);
  for (std::size_t chunk = 0; chunk < shipment.chunks; ++chunk) {
    const unsigned own = seed + static_cast<unsigned>(chunk);
    put(lane, shipment.place(chunk), noise(bytes, own).data(), bytes);
    link.send(shipment, chunk, bytes);
  }
  line.send(shipment);
}

void sends(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(0);
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
    fill(line, link, *lane, shipments[i], 10 * i);
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
  put(*lane, shipment.place(0), noise(bytes, 50).data(), bytes);
  link.send(shipment, 0, bytes);
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

/// The chunks of a shipment, on a device.
void check_arrival(PeerLink& link, const Shipment& shipment, int device, unsigned seed) {
  CHECK(link.knows(sender, shipment.first, shipment.chunks));
  for (std::uint32_t chunk = 0; chunk < shipment.chunks; ++chunk) {
    const PeerLink::Arrival arrival = link.look(sender, shipment.first + chunk, device);
    CHECK(arrival.state == Parcel::there && arrival.bytes == bytes);
    CHECK(device == gpu::host || arrival.device == device);
    const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(arrival.device);
    CHECK(bytes_of(*lane, arrival.data, bytes) == noise(bytes, seed + chunk));
  }
}

void receives(const Line& line) {
  End end(line, receiver);
  PeerLink& link = end.link;
  CHECK(!link.knows(sender, 0, 1));
  link.meet(sender, 1);
  CHECK(!link.knows(sender, 0, 1));  // nothing is shared
  open_what_is_shared(link, line, 1);
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

// ---- Landing ----

/// As far as the receiver has given this process memory for it.
void lands(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(0);
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
    fill(line, link, *lane, shipments[i], 10 * i);
  }
  // It is full, and the limit leaves no more; nobody waits for that.
  CHECK(!link.reserve_landing(receiver, 0, 2, bytes, 5, shipment) && shipment.chunks == 0);
  CHECK(link.reserve(receiver, 0, 2, bytes, 5, shipment));
  fill(line, link, *lane, shipment, 50);
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
  const std::unique_ptr<Lane> other = gpu::gpu()->open_lane(1);
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
  fill(line, link, *gpu::gpu()->open_lane(0), shipment, 70);
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

// ---- Offers ----

constexpr std::size_t apart = 24;  ///< where the data begins in its block

void offers(const Line& line) {
  End end(line, sender);
  PeerLink& link = end.link;
  const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(0);
  introduce(link, line, 0);
  const std::byte* const large = program_memory(MPRESS_SIMULATED_GPU, 0, 4 * limit + 1);
  std::byte* const block = program_memory(MPRESS_SIMULATED_GPU, 0, 2 * bytes + apart);
  std::byte* const data = block + apart;
  for (unsigned chunk = 0; chunk < 2; ++chunk) {
    put(*lane, data + chunk * bytes, noise(bytes, chunk).data(), bytes);
  }
  Shipment shipment;
  const auto reserve = [&] { CHECK(link.reserve(receiver, 0, 2, bytes, 0, shipment)); };
  const auto offer = [&] { return link.offer(shipment, receiver, 0, data, 2 * bytes); };
  const auto look = [&] { return link.look_at_offer(shipment, receiver); };
  const auto offer_now = [&] {
    reserve();
    CHECK(offer() && look() == PeerLink::Offer::open);
    line.send(shipment);
  };

  // The receiver is asked to open the block from the second message on.
  for (unsigned i = 0; i < 2; ++i) {
    reserve();
    CHECK(!offer() && !link.offer(shipment, receiver, 0, large, bytes));
    CHECK(!link.offer(shipment, receiver, 0, data + bytes, bytes + 1));  // beyond its end
    fill(line, link, *lane, shipment, 0);
    line.wait();
  }

  offer_now();
  line.wait();
  CHECK(look() == PeerLink::Offer::borrowed && !link.withdraw(shipment, receiver));
  line.tell();
  line.wait();
  CHECK(look() == PeerLink::Offer::returned);

  offer_now();
  line.wait();  // dropped
  CHECK(look() == PeerLink::Offer::returned);

  offer_now();  // the device tells
  while (look() != PeerLink::Offer::returned) ::sched_yield();
  line.wait();

  // Who does not take what is offered is offered less: 0, 0, 1, 3 messages go by.
  for (unsigned misses = 0; misses < 4; ++misses) {
    for (unsigned i = 0; i < (1u << misses >> 1) - (misses > 0 ? 1 : 0); ++i) {
      reserve();
      CHECK(!offer());
      link.lay_out(shipment);
      link.fail(shipment);
      link.cancel(0);
    }
    offer_now();
    CHECK(link.withdraw(shipment, receiver) && !link.withdraw(shipment, receiver));
    fill(line, link, *lane, shipment, 7);
    line.wait();
  }
  end.finish(line);
}

void borrows(const Line& line) {
  End end(line, receiver);
  PeerLink& link = end.link;
  open_what_is_shared(link, line, 1);
  Shipment shipment;
  const auto take_all = [&] {
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) link.take(sender, shipment.first + chunk);
  };
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(line.receive(shipment));
    check_arrival(link, shipment, 1, 0);
    const std::uint32_t block = link.look(sender, shipment.first, 1).block;
    CHECK(block == i);
    link.open_block(sender, block, 1);
    link.open_block(sender, block + 1, 1);  // there is none
    take_all();
    line.tell();
  }

  const auto borrow = [&](int device) {
    CHECK(line.receive(shipment));
    CHECK(link.look(sender, shipment.first, device).state == Parcel::offered);
    return link.borrow(sender, shipment.first, device, 2 * bytes);
  };
  const auto check = [&](const PeerLink::Arrival& arrival) {
    CHECK(arrival.state == Parcel::borrowed && arrival.bytes == 2 * bytes);
    const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(arrival.device);
    for (unsigned chunk = 0; chunk < 2; ++chunk) {
      CHECK(bytes_of(*lane, arrival.data + chunk * bytes, bytes) == noise(bytes, chunk));
    }
  };
  check(borrow(gpu::host));
  line.tell();
  line.wait();
  link.take(sender, shipment.first);
  line.tell();

  CHECK(line.receive(shipment));
  link.drop(sender, shipment.first, 2);
  line.tell();

  const PeerLink::Arrival arrival = borrow(0);
  CHECK(arrival.device == 0);
  const std::unique_ptr<Lane> lane = gpu::gpu()->open_lane(0);
  auto* const own = static_cast<std::byte*>(gpu::gpu()->allocate(Place::device, 0, 2 * bytes));
  lane->copy(own, arrival.data, 2 * bytes);
  const auto told = lane->tell(link.taken_flag(sender, shipment.first, 0), 1);
  line.tell();
  CHECK(finish(*lane, told) == State::done);
  CHECK(bytes_of(*lane, own + bytes, bytes) == noise(bytes, 1));
  gpu::gpu()->release(Place::device, 0, own);

  for (unsigned misses = 0; misses < 4; ++misses) {
    CHECK(line.receive(shipment) && line.receive(shipment));  // offered, and sent after all
    CHECK(link.borrow(sender, shipment.first, 1, 2 * bytes).state == Parcel::planned);
    check_arrival(link, shipment, 1, 7);
    take_all();
    line.tell();
  }
  end.finish(line);
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
    parcel.slab = lie.slab, parcel.offset = lie.offset, parcel.bytes = lie.bytes;
    parcel.state.store(Parcel::there);
    const auto state = link.look(sender, 3, 0).state;
    CHECK(state == (lie.is_right ? Parcel::there : Parcel::failed));
  }
  for (const std::uint32_t landing : {1u, 2u, ~0u}) {  // nothing has landed here
    Parcel& parcel = segment->parcel[3];
    parcel.landing = landing, parcel.offset = 0, parcel.bytes = 8;
    CHECK(link.look(sender, 3, 0).state == Parcel::failed);
    CHECK(link.lands_on(sender, 3) == gpu::host);
    parcel.landing = 0;
  }
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
  run(library, lands, receives_near);
  run(library, lands_only, receives_without_a_slab);
  run(library, cannot_land, gives_once);
  run(library, offers, borrows);
  run(library, misleads, is_not_misled);
  run(library, shares_again, meets_in_threads);
  run(library, ends, survives);
  return check::failures != 0;
}
