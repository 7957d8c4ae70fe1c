// The two ends of a peer link, in processes with simulated GPUs: how they meet, and chunks between
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "check.hpp"
#include "link/peer/peer_link.hpp"
#include "processes.hpp"
#include "queues.hpp"

namespace mpress {

using link::Arrival;
using link::Link;
using link::Neighbour;
using link::PeerLink;
using link::Slot;
using link::Transfer;

inline constexpr std::array<std::uint8_t, 16> nonce = {1, 2, 3};
inline constexpr std::size_t limit = 40 << 20;  // one staging of 32 MiB, and little more
inline constexpr std::size_t bytes = 3 << 20;   // of a chunk
inline constexpr int sender = 7, receiver = 4;  // ranks, of which one runs elsewhere

/// A route to a slot.
inline link::Route at(std::uint64_t slot) {
  return {0, link::Kind::peer, static_cast<std::uint32_t>(slot)};
}

inline bool knows(Link& link, int rank, std::uint64_t slot, std::uint64_t chunks) {
  return link.knows(rank, at(slot), chunks);
}

/// A process's end of the link, which knows the other's.
struct End {
  PeerLink peer;
  link::MemoryLink& link = peer;
  std::vector<Neighbour> ranks;

  End(const Line& line, int rank) {
    const Neighbour own{rank, link::own_process(), peer.open(nonce, rank, true)};
    Neighbour other;
    line.send(own);
    CHECK(line.receive(other));
    const bool sends = rank == sender;
    ranks = {sends ? other : own,
             {5, {}, link::Address(link::HostMemory::Address{})},
             sends ? own : other};
    peer.set_ranks(ranks, {limit}, nullptr);
  }

  /// Both have done with everything.
  void finish(const Line& line) {
    peer.close();
    line.tell();
    line.wait();
    peer.free_memory();
  }
};

/// For one reader.
inline bool reserve(Link& link, int rank, int device, std::size_t chunks, std::size_t size,
                    std::uint64_t operation, Transfer& transfer) {
  return link.reserve({{&rank, 1}, device, chunks, size, operation}, transfer);
}
inline bool reserve_at(PeerLink& peer, int rank, int device, std::size_t chunks, std::size_t size,
                       std::uint64_t operation, Transfer& transfer) {
  return peer.reserve_at_reader({{&rank, 1}, device, chunks, size, operation}, transfer);
}

/// Shares a staging, and waits until it has been opened. For somebody who has never looked at this
/// one nothing is shared.
inline void introduce(Link& link, const Line& line, int device) {
  const bool knows = link.reaches(receiver);
  line.send(knows);
  Transfer transfer;
  for (int round = knows ? 1 : 0; round < 2; ++round) {
    CHECK(!reserve(link, receiver, device, 1, bytes, 0, transfer));
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

/// Answers introduce() for a device.
inline void open_what_is_shared(Link& link, const Line& line, int device) {
  look_for_what_is_shared(line, [&] { link.connect(sender, device); });
}

/// Sends noise by the chunks of a transfer, and tells the other end which these are.
inline void fill(const Line& line, Link& link, Queue& queue, const Transfer& transfer,
                 unsigned seed) {
  link.lay_out(transfer);
  for (std::size_t chunk = 0; chunk < transfer.chunks; ++chunk) {
    const unsigned own = seed + static_cast<unsigned>(chunk);
    put(queue, transfer.place(chunk), noise(bytes, own).data(), bytes);
    link.publish(transfer, chunk, bytes);
  }
  link.release(transfer);
  line.send(transfer);
}

/// What fill() sent is there, on a device.
inline void check_arrival(PeerLink& peer, const Transfer& transfer, int device, unsigned seed) {
  CHECK(knows(peer, sender, transfer.first, transfer.chunks));
  for (std::uint32_t chunk = 0; chunk < transfer.chunks; ++chunk) {
    const Arrival arrival = peer.look(sender, transfer.first + chunk, device);
    CHECK(arrival.state == Slot::there && arrival.bytes == bytes);
    CHECK(device == gpu::host || arrival.device == device);
    const std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(arrival.device);
    CHECK(bytes_of(*queue, arrival.data, bytes) == noise(bytes, seed + chunk));
  }
}

}  // namespace mpress
