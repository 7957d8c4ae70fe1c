// Messages that are offered where the program has them: when they may be, and that they are
// getting, dropped, withdrawn and returned.

#include <sched.h>

#include <cstdlib>
#include <memory>

#include "peer_link_ends.hpp"

using namespace mpress;
using gpu::Place;

namespace {

constexpr std::size_t apart = 24;  ///< where the data begins in its block

void offers(const Line& line) {
  End end(line, sender);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  link::Offers& offers = end.peer.offers();
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  introduce(link, line, 0);
  const std::byte* const large = program_memory(MPRESS_SIMULATED_GPU, 0, 4 * limit + 1);
  std::byte* const block = program_memory(MPRESS_SIMULATED_GPU, 0, 2 * bytes + apart);
  std::byte* const data = block + apart;
  for (unsigned chunk = 0; chunk < 2; ++chunk) {
    put(*queue, data + chunk * bytes, noise(bytes, chunk).data(), bytes);
  }
  Transfer transfer;
  const auto reserve = [&] { CHECK(mpress::reserve(link, receiver, 0, 2, bytes, 0, transfer)); };
  const auto exposes = [&](const void* from, std::size_t size) {
    return offers.expose(transfer, receiver, 0, from, size) == link::Offers::Exposure::offered;
  };
  const auto offer = [&] { return exposes(data, 2 * bytes); };
  const auto look = [&] { return offers.look(transfer, receiver); };
  const auto offer_now = [&] {
    reserve();
    CHECK(offer() && look() == link::Offers::State::open);
    line.send(transfer);
  };

  // The receiver is asked to open the block from the second message on.
  for (unsigned i = 0; i < 2; ++i) {
    reserve();
    CHECK(!offer() && !exposes(large, bytes));
    CHECK(!exposes(data + bytes, bytes + 1));  // beyond its end
    fill(line, link, *queue, transfer, 0);
    line.wait();
  }

  offer_now();
  line.wait();
  CHECK(look() == link::Offers::State::getting && !offers.withdraw(transfer, receiver));
  line.tell();
  line.wait();
  CHECK(look() == link::Offers::State::returned);

  offer_now();
  line.wait();  // dropped
  CHECK(look() == link::Offers::State::returned);

  offer_now();  // the device tells
  while (look() != link::Offers::State::returned) ::sched_yield();
  line.wait();

  // Without memory of the link's: what is not taken goes by MPI.
  const auto reserve_none = [&] {
    CHECK(peer.reserve_bare(receiver, 2, 0, transfer) && !transfer.memory);
  };
  reserve_none();
  CHECK(!exposes(large, bytes) && !offers.introduce(transfer));
  CHECK(link.fail(transfer));
  link.cancel(0);
  reserve_none();
  CHECK(offer() && offers.withdraw(transfer, receiver) && !offers.withdraw(transfer, receiver));
  link.release(transfer);
  line.send(transfer);
  line.wait();

  // Long ones are taken two at a time.
  Transfer all[3];
  for (Transfer& one : all) {
    reserve_none();
    CHECK(offer() && !offers.is_seen(transfer));
    one = transfer;
    line.send(one);
  }
  line.wait();
  for (const Transfer& one : all) CHECK(offers.is_seen(one));
  CHECK(offers.look(all[1], receiver) == link::Offers::State::getting);
  CHECK(!link.fail(all[1]) && offers.look(all[2], receiver) == link::Offers::State::open);
  line.tell();
  line.wait();
  for (const Transfer& one : all) {
    CHECK(offers.look(one, receiver) == link::Offers::State::returned);
  }

  // Who does not take what is offered is offered less: 0, 0, 1, 3 messages go by.
  for (unsigned misses = 0; misses < 4; ++misses) {
    for (unsigned i = 0; i < (1u << misses >> 1) - (misses > 0 ? 1 : 0); ++i) {
      reserve();
      CHECK(!offer());
      link.lay_out(transfer);
      link.fail(transfer);
      link.cancel(0);
    }
    offer_now();
    CHECK(offers.withdraw(transfer, receiver) && !offers.withdraw(transfer, receiver));
    fill(line, link, *queue, transfer, 7);
    line.wait();
  }
  end.finish(line);
}

void gets(const Line& line) {
  End end(line, receiver);
  PeerLink& peer = end.peer;
  Link& link = end.link;
  link::Gets& gets = end.peer.gets();
  open_what_is_shared(link, line, 1);
  Transfer transfer;
  const auto take_all = [&] {
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk)
      peer.acknowledge(sender, transfer.first + chunk);
  };
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(line.receive(transfer));
    check_arrival(peer, transfer, 1, 0);
    const std::uint32_t block = peer.look(sender, transfer.first, 1).block;
    CHECK(block == i);
    gets.open_block(sender, block, 1);
    gets.open_block(sender, block + 1, 1);  // there is none
    take_all();
    line.tell();
  }

  const auto get = [&](int device) {
    CHECK(line.receive(transfer));
    CHECK(peer.look(sender, transfer.first, device).state == Slot::offered);
    return gets.get(sender, transfer.first, device, 2 * bytes);
  };
  const auto check = [&](const Arrival& arrival) {
    CHECK(arrival.state == Slot::getting && arrival.bytes == 2 * bytes);
    const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(arrival.device);
    for (unsigned chunk = 0; chunk < 2; ++chunk) {
      CHECK(bytes_of(*queue, arrival.data + chunk * bytes, bytes) == noise(bytes, chunk));
    }
  };
  check(get(gpu::host));
  line.tell();
  line.wait();
  peer.acknowledge(sender, transfer.first);
  line.tell();

  CHECK(line.receive(transfer));
  link.discard(sender, at(transfer.first), 2);
  line.tell();

  const Arrival arrival = get(0);
  CHECK(arrival.device == 0);
  const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(0);
  auto* const own = static_cast<std::byte*>(gpu::gpu()->allocate(Place::device, 0, 2 * bytes));
  std::uint32_t* const flag = gets.acknowledge_flag(sender, transfer.first, 0);
  const auto told = queue->copy(own, arrival.data, 2 * bytes, flag);
  line.tell();
  CHECK(finish(*queue, told) == State::done);
  CHECK(bytes_of(*queue, own + bytes, bytes) == noise(bytes, 1));
  gpu::gpu()->release(Place::device, 0, own);

  CHECK(line.receive(transfer));
  const Arrival withdrawn = peer.look(sender, transfer.first, 1);
  CHECK(withdrawn.state == Slot::by_mpi && withdrawn.block == 1);
  CHECK(!link.discard(sender, at(transfer.first), 2));
  line.tell();

  constexpr std::size_t turn = 4 << 20;  // what takes turns
  Transfer all[3];
  const auto is_turn = [&](unsigned i, std::size_t length, std::uint64_t waited_ns) {
    return gets.is_turn(sender, all[i].first, length, 1, 1 + waited_ns);
  };
  const auto take_over = [&](unsigned i) {
    CHECK(gets.get(sender, all[i].first, 1, 2 * bytes).state == Slot::getting);
  };
  for (Transfer& one : all) CHECK(line.receive(one));
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(is_turn(i, turn, 0));
    take_over(i);
  }
  CHECK(!is_turn(2, turn, 0) && !is_turn(2, turn, 50000) && is_turn(2, turn - 1, 0));
  line.tell();
  line.wait();
  peer.acknowledge(sender, all[0].first);
  CHECK(is_turn(2, turn, 0));
  take_over(2);
  CHECK(!is_turn(2, turn, 0) && is_turn(2, turn, 1000000000));
  for (unsigned i = 1; i < 3; ++i) peer.acknowledge(sender, all[i].first);
  line.tell();

  for (unsigned misses = 0; misses < 4; ++misses) {
    CHECK(line.receive(transfer) && line.receive(transfer));  // offered, and sent after all
    CHECK(gets.get(sender, transfer.first, 1, 2 * bytes).state == Slot::planned);
    check_arrival(peer, transfer, 1, 7);
    take_all();
    line.tell();
  }
  end.finish(line);
}

}  // namespace

int main() {
  ::setenv("SIMULATED_GPU_LEAKS", "abort", 1);
  const char* const library = MPRESS_SIMULATED_GPU;
  run(library, offers, gets);
  return check::failures != 0;
}
