// The peer link: chunks of messages from a GPU to another of the same host, by way of memory of the
// sender's device that the receiver's device reaches.
//
// The sender puts chunks into memory of its own, which it has shared, and is done with them: no
// send waits for its receiver. The receiver copies or decodes them from there, and says so; then
// the memory is free for others. It is set up in slabs, when messages need it, up to a limit, and
// each receiver opens a slab once, when it next gets a message from there: until then, and where
// memory is short, messages take another way.
//
// What is encoded may land at the receiver's instead, in memory that it has given this sender when
// that asked for some: an encoder's stores cross the link while it works, and the decoder finds
// them near. Where that memory is full the sender's own serves, so this makes no send wait, either.
//
// What needs no encoding may be offered where the program has it, to a receiver who has opened that
// block of memory. It borrows the memory, without any help of the sender's, and copies once; an
// offer that nobody answers while the sender waits is withdrawn, and the data copied to the slab.
//
// MPI carries the messages' headers; nothing here knows MPI or elements. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/peer/segment.hpp"
#include "memory/ranges.hpp"

namespace mpress::link {

/// A rank of this host, and where its segment is.
struct HostRank {
  int rank;  ///< in MPI_COMM_WORLD
  SegmentAddress segment;
};

/// Room for the chunks of one message: parcels of this process's segment, in a row.
struct Shipment {
  std::uint32_t first = 0;
  std::uint32_t chunks = 0;
  std::uint64_t chunk_room = 0;  ///< bytes from one to the next
  std::byte* memory = nullptr;   ///< where the first goes, for the sender's device; null: nowhere
  /// Bytes of all chunks, where they go as they are and are published by runs; 0: each by itself.
  std::uint64_t raw_bytes = 0;

  std::uint64_t bytes() const { return chunks * chunk_room; }

  /// Where a chunk goes: 256-byte aligned. Chunks of a multiple of 256 bytes lie one behind the
  /// other.
  std::byte* place(std::size_t chunk) const { return memory + chunk * chunk_room; }

  /// Runs of chunks that are published together: each twice as long as the one before, so that the
  /// receiver gets the first soon and the launches of all take little.
  static constexpr std::uint32_t run_behind(std::uint32_t first) { return 2 * first + 1; }
};

class PeerLink {
 public:
  /// Makes this process's segment, for others to find at its address; without one (as the system
  /// refuses, or `wanted` says) there is no link.
  SegmentAddress open(const std::array<std::uint8_t, 16>& nonce, int rank, bool wanted);

  /// Notes the ranks of this host, this one included, in an order that all of them share. At most
  /// `limit` bytes of device memory will be held.
  void meet_host(const std::vector<HostRank>& ranks, std::size_t limit);

  // Sending.

  /// Might messages to this rank go this way, now or once the two have met? Like reaches(), it
  /// costs a few nanoseconds.
  bool may_reach(int rank) const;

  /// Has it opened what messages go through?
  bool reaches(int rank) const;

  /// Room for `chunks` chunks of up to `bytes` bytes each, in memory of `device` that `rank` has
  /// opened; `message` is the serial number for cancel(). False, and `shipment` is as before, where
  /// there is none now: then room is made, and found once the rank has opened it. Before the rank
  /// hears of the shipment, it is either laid out or offered.
  bool reserve(int rank, int device, std::size_t chunks, std::size_t bytes, std::uint64_t message,
               Shipment& shipment);

  /// The same in memory of the receiver's, as `device` reaches it. False where it has none free:
  /// then it is asked for some, for later messages.
  bool reserve_landing(int rank, int device, std::size_t chunks, std::size_t bytes,
                       std::uint64_t message, Shipment& shipment);

  /// Parcels without memory, for a message that is offered, or else goes by MPI. False where there
  /// are none, or the rank has opened nothing yet.
  bool reserve_offer(int rank, std::size_t chunks, std::uint64_t message, Shipment& shipment);

  /// For chunks that will be published.
  void lay_out(const Shipment& shipment);

  /// Can devices publish chunks by themselves? Then their queues write to report().
  bool devices_publish() const { return is_mapped_.load(std::memory_order_relaxed); }

  /// What tells that a chunk, or the run that begins with it, is there.
  Report* report(const Shipment& shipment, std::size_t chunk);

  /// The host's word that a chunk is where it should be, and has `bytes` bytes.
  void publish(const Shipment& shipment, std::size_t chunk, std::size_t bytes);

  /// What was not published of a shipment will never come; no device works at it any more. False
  /// where it was offered and has been taken: that goes on.
  bool fail(const Shipment& shipment);

  /// The sender has done with a shipment: all of it is published. Its memory comes free once the
  /// receiver has done so, too. What failed or was returned is released.
  void release(const Shipment& shipment);

  /// Nobody will ask for the chunks of this message.
  void cancel(std::uint64_t message);

  // Offering.

  /// Offers `rank` the data of a shipment that lies in memory of the program's, `bytes` bytes from
  /// `data` on, on `device`. To be called before the rank hears of the shipment. False where the
  /// memory cannot be shared, the rank has not opened it yet (it will be asked to), or has not
  /// taken what it was offered lately.
  bool offer(const Shipment& shipment, int rank, int device, const void* data, std::size_t bytes);

  enum class Offer : std::uint8_t {
    open,
    borrowed,  ///< the memory is in use
    returned,  ///< it is not any more, and the shipment is over
  };

  /// What has become of the offer of a shipment to `rank`.
  Offer look_at_offer(const Shipment& shipment, int rank);

  /// Has its receiver seen it, and waits for its turn?
  bool is_seen(const Shipment& shipment) const;

  /// Takes an offer back, to send the chunks after all, by MPI where the shipment has no memory.
  /// False where it has been taken.
  bool withdraw(const Shipment& shipment, int rank);

  /// Tells the receiver of a shipment without memory, before it hears of that, that its chunks come
  /// by MPI, and which block the next ones may be offered from. False where there is none such.
  bool introduce(const Shipment& shipment);

  // Receiving.

  /// To be called when a message from `rank` has come to memory of `device`: opens what that rank
  /// shares, and gives it the memory of `device` that it asks for. Costs a few nanoseconds mostly.
  void meet(int rank, int device);

  /// Has this process ever been sent anything this way?
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }

  /// A chunk as its receiver sees it.
  struct Arrival {
    Parcel::State state;
    const std::byte* data;  ///< device memory
    std::size_t bytes;
    int device;                ///< whose queues reach it
    std::uint32_t block;       ///< for open_block(), of what is `there`
    std::uint32_t serial = 0;  ///< for give_back(), of what is `borrowed`
    bool is_landed = false;    ///< it lies in this process's own memory
  };

  /// Is the shipment whose first parcel has this number one of `rank`'s, as far as can be told?
  bool knows(int rank, std::uint64_t parcel, std::uint64_t chunks) const;

  /// The device whose memory a parcel lands in; gpu::host where it does not land in this process's.
  int lands_on(int rank, std::uint64_t parcel);

  /// Looks at a parcel of `rank`'s, for queues of `device` if those reach it.
  Arrival look(int rank, std::uint64_t parcel, int device);

  /// Its memory is not needed any more.
  void take(int rank, std::uint64_t parcel);

  /// Nobody asks for this message. False where its chunks come by MPI all the same.
  bool drop(int rank, std::uint64_t parcel, std::uint64_t chunks);

  /// Is it the turn of an offer of `bytes` bytes, found at `found_ns`, to be borrowed at `now_ns`?
  /// GPUs that read from several others at once, and each from one that others read from, are
  /// served unevenly: some wait for a whole message. So long offers are borrowed from one rank at a
  /// time, and by one rank at a time, from each rank in turn. What was found long ago has its turn
  /// anyhow.
  bool is_turn(int rank, std::uint64_t parcel, std::size_t bytes, std::uint64_t found_ns,
               std::uint64_t now_ns);

  /// Opens the block that a message was sent from, for the next ones, if there is any.
  void open_block(int rank, std::uint32_t block, int device);

  /// Takes an offer of `bytes` bytes: where they lie, for queues of `device` if those reach it,
  /// until take() of this parcel. It is `planned` where the sender has withdrawn it, and `failed`
  /// where it is none.
  Arrival borrow(int rank, std::uint64_t parcel, int device, std::size_t bytes);

  /// The flag by which a queue of `device` can tell that a parcel was taken (gpu::Queue::copy()),
  /// in place of take(). Null where it cannot.
  std::uint32_t* taken_flag(int rank, std::uint64_t parcel, int device);

  /// take() of what was borrowed, where a device that failed may have told by that flag, or not. It
  /// does nothing any more.
  void give_back(int rank, std::uint64_t parcel, std::uint32_t serial);

  /// Does the process of `rank` still exist?
  bool lives(int rank) const;

  // The end: nothing is under way, and first all ranks close, then each releases.

  void close();
  void release();

 private:
  struct Slab {
    int device;
    std::byte* memory;
    memory::Ranges free;
  };
  struct Sent {
    Shipment shipment;
    std::uint64_t message;
    std::uint64_t begin;   ///< of its memory in the room that it is part of
    memory::Ranges* room;  ///< null: it has none
  };
  /// A block of the program's that messages were sent from.
  struct Lent {
    std::uint32_t number = 0;  ///< in the segment
    bool is_shared = false;
    bool is_refused = false;  ///< it cannot be
  };
  /// How a rank answers offers.
  struct Borrower {
    std::uint32_t misses = 0;  ///< offers in a row that it did not take
    std::uint32_t skip = 0;    ///< messages until it gets the next
  };
  struct Mapping {
    void* memory = nullptr;
    bool is_tried = false;
  };
  /// Memory of a receiver's that messages of this process land in.
  struct Landing {
    SharedBlock block;
    memory::Ranges free;
    std::vector<Mapping> mappings;  ///< by device
  };
  struct Landings {
    std::deque<Landing> all;
    std::uint64_t bytes = 0;
    bool is_refused = false;  ///< it cannot be opened
  };
  /// Memory of this process's that messages of another land in.
  struct Landed {
    int device;
    std::byte* memory;
    std::uint64_t bytes;
  };
  /// A parcel that was borrowed.
  struct Reading {
    const Parcel* parcel = nullptr;
    std::uint32_t serial = 0;

    /// Is it still?
    bool goes_on() const;
  };
  /// What this process has opened of another's, by device and number.
  using Opened = std::vector<std::vector<Mapping>>;
  /// What a rank of this host shares.
  struct Source {
    MappedSegment segment;
    int home = gpu::host;  ///< the device that has opened everything so far
    bool is_tried = false;
    std::atomic<bool> has_room{false};   ///< its messages may lie in a slab, or have landed
    std::atomic<std::uint32_t> seen{0};  ///< slabs opened
    std::atomic<bool> is_over{false};    ///< no more of them can be
    Opened slabs;
    Opened blocks;
    std::vector<Landed> landed;
    std::uint64_t landed_bytes = 0;
    std::uint64_t too_much = UINT64_MAX;     ///< bytes more that a device did not have
    std::atomic<std::uint64_t> answered{0};  ///< what it last wanted
    std::array<Reading, 2> readings;         ///< the last long offers that were borrowed
    std::uint64_t asked_ns = 0;              ///< when a long offer was last asked for
    std::uint64_t turn = 0;                  ///< its last one; 0: it has had none
    int mapped_by = gpu::host;               ///< the device that the segment was mapped with
    bool is_unmappable = false;
  };

  int index_of(int rank) const;
  bool has_met(int rank) const;
  /// Of a rank of this host.
  Source& source_of(int rank) { return sources_[static_cast<std::size_t>(index_of(rank))]; }
  static const Landed* landed_of(const Source& source, const Parcel& parcel);
  /// As PeerSegment::reader has it.
  std::uint64_t own_reader() const { return static_cast<std::uint64_t>(own_->rank) + 1; }
  bool is_free(const Source& source) const;
  Borrower& borrower_of(int rank) { return borrowers_[static_cast<std::size_t>(index_of(rank))]; }
  std::uint64_t room_of(int rank, std::size_t chunks, std::size_t bytes,
                        std::uint32_t& opened) const;
  bool reserve_slab(int device, std::uint32_t opened, std::uint64_t message, Shipment& planned);
  bool reserve_landed(Landings& landings, int device, std::uint64_t message, Shipment& planned);
  bool reserve_in(memory::Ranges* room, std::uint32_t slab, std::uint32_t landing, void* memory,
                  std::uint64_t message, Shipment& planned);
  void reap(std::size_t count);
  bool is_over(const Sent& sent) const;
  void map_own(int device);
  void grow(int device, std::uint64_t bytes);
  std::byte* share_memory(int device, std::uint64_t bytes, std::uint64_t held, std::uint64_t left,
                          SharedBlock& block);
  bool find_lent(int device, const void* data, std::size_t bytes, Parcel& parcel);
  void note_miss(int rank);
  void open_new(int rank, Source& source, int device);
  void give_landing(Source& source, int device);
  static void* open_for(Opened& opened, std::uint32_t number, const SharedBlock& block, int& device,
                        int home);

  MappedSegment own_;
  std::array<std::uint8_t, 16> nonce_{};
  std::vector<HostRank> ranks_;  ///< of this host
  std::vector<int> index_;       ///< in ranks_, by rank in MPI_COMM_WORLD; negative: elsewhere
  std::size_t own_index_ = 0;
  std::size_t limit_ = 0;

  std::mutex sending_;
  std::deque<Slab> slabs_;
  std::size_t held_ = 0;        ///< bytes of slabs
  std::uint64_t patience_ = 0;  ///< reservations until memory is asked for again
  std::atomic<bool> cannot_share_{false};
  memory::Ranges parcels_{PeerSegment::parcels};
  std::deque<Sent> sent_;
  /// By the first parcel of a shipment: its sender has not done with it.
  std::array<std::atomic<bool>, PeerSegment::parcels> is_held_{};
  int own_mapped_by_ = gpu::host;  ///< the device that the own segment was mapped with
  bool is_map_tried_ = false;
  std::atomic<bool> is_mapped_{false};
  std::uint32_t serial_ = 0;                      ///< of shipments
  std::unordered_map<std::uint64_t, Lent> lent_;  ///< by the block's id
  std::size_t lent_bytes_ = 0;
  std::vector<Borrower> borrowers_;  ///< as ranks_
  std::vector<Landings> landings_;   ///< as ranks_

  std::mutex receiving_;
  std::vector<Source> sources_;  ///< as ranks_
  std::uint64_t landed_ = 0;     ///< bytes that others' messages land in
  Source* latest_ = nullptr;     ///< whose long offer was borrowed last
  std::uint64_t turns_ = 0;
  std::atomic<bool> is_used_{false};
  std::atomic<bool> is_said_{false};  ///< that something cannot be opened
};

}  // namespace mpress::link
