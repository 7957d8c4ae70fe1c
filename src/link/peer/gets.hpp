// Zero copy, at the reader's: getting what a sender offers, and taking turns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "link/peer/opened.hpp"
#include "link/peer/segment.hpp"

namespace mpress::link {

/// Of ranks whose slots can be read. Thread-safe.
class Gets {
 public:
  /// `own` is this process's rank; `sources` outlives this.
  void open(Sources& sources, int own);

  /// Is it the turn of an offer of `bytes` bytes, found at `found_ns`, to be taken at `now_ns`?
  /// GPUs that read from several others at once, and each from one that others read from, are
  /// served unevenly: some wait for a whole message. So long offers are taken from one rank at a
  /// time, and by one rank at a time, from each rank in turn. What was found long ago has its turn
  /// anyhow.
  bool is_turn(int rank, std::uint64_t slot, std::size_t bytes, std::uint64_t found_ns,
               std::uint64_t now_ns);

  /// Opens the block that a message was sent from, for the next ones, if there is any.
  void open_block(int rank, std::uint32_t block, int device);

  /// Takes an offer of `bytes` bytes: where they lie, for queues of `device` if those reach it,
  /// until this slot is acknowledged. It is `planned` where the sender has withdrawn it, and
  /// `failed` where it is none.
  Arrival get(int rank, std::uint64_t slot, int device, std::size_t bytes);

  /// The flag by which a queue of `device` acknowledges, in place of the host. Null where it
  /// cannot.
  std::uint32_t* acknowledge_flag(int rank, std::uint64_t slot, int device);

  /// Acknowledges what this process got, where a device that failed may have done so by the flag,
  /// or not. It does nothing any more.
  void acknowledge_once(int rank, std::uint64_t slot, std::uint32_t serial);

  /// Nothing is under way any more.
  void close();

 private:
  /// A get under way.
  struct Reading {
    const Slot* slot = nullptr;
    std::uint32_t serial = 0;

    /// Is it still?
    bool goes_on() const;
  };
  /// A rank of this host that offers.
  struct Sender {
    PeerSegment* segment = nullptr;  ///< once something of its was taken
    Opened blocks;
    std::array<Reading, 2> readings;  ///< the last long offers that were taken
    std::uint64_t asked_ns = 0;       ///< when a long offer was last asked for
    std::uint64_t turn = 0;           ///< its last one; 0: it has had none
    int mapped_by = gpu::host;        ///< the device that the segment was mapped with
    bool is_unmappable = false;

    long ongoing() const;
  };

  Sender& sender_of(const Source& source) { return senders_[source.index]; }
  bool is_free(const PeerSegment& segment) const;

  Sources* sources_ = nullptr;
  std::uint64_t own_reader_ = 0;  ///< as PeerSegment::reader has it

  std::mutex mutex_;
  std::vector<Sender> senders_;  ///< by rank of the host
  Sender* latest_ = nullptr;     ///< whose long offer was taken last
  std::uint64_t turns_ = 0;
};

}  // namespace mpress::link
