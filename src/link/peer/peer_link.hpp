// The peer link: data from a GPU to another of the same host, by way of memory that both reach.
//
// The sender puts chunks into staging memory of its own, which it has shared, and is done with
// them: no send waits for its readers. Those copy or decode from there, and acknowledge; then the
// memory is free for others. It is made when messages need it, up to a limit, and each reader opens
// a block of it once, when it next gets a message from there: until then, and where memory is
// short, messages take another way.
//
// What is encoded for one reader may land in staging memory of the reader's instead, which that has
// given this sender: an encoder's stores cross the link while it works, and the decoder finds them
// near. Where that memory is full the sender's own serves, so this makes no send wait, either.
//
// What needs no encoding may be exposed where the program has it (zero copy): offered to a reader
// who has opened that block of memory, and who gets it from there without any help of the sender's.
// An offer that nobody answers while the sender waits is withdrawn, and the data copied to staging.
//
// Nothing here knows MPI or elements. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/link.hpp"
#include "link/parameters.hpp"
#include "link/peer/segment.hpp"
#include "link/sizes.hpp"
#include "memory/ranges.hpp"

namespace mpress::link {

/// A rank of this host, and where its segment is.
struct HostRank {
  int rank;  ///< in MPI_COMM_WORLD
  SegmentAddress segment;
};

class PeerLink final : public MemoryLink {
 public:
  /// Makes this process's segment, for others to find at its address; without one (as the system
  /// refuses, or `wanted` says) there is no link.
  SegmentAddress open(const std::array<std::uint8_t, 16>& nonce, int rank, bool wanted);

  /// Notes the ranks of this host, this one included, in an order that all of them share. At most
  /// `limit` bytes of device memory will be held, as send and as receive staging each; or, with
  /// `grows`, as much of it as a device with much memory does not miss.
  void set_ranks(const std::vector<HostRank>& ranks, std::size_t limit, bool grows = false);

  /// What is assumed of this machine. To be set before messages travel.
  const Parameters& parameters() const { return parameters_; }
  void set_parameters(const Parameters& parameters) { parameters_ = parameters; }

  /// The way that is tried for GPUs that cannot be reached, in a few words.
  void set_other_way(const char* way) { other_way_ = way; }

  Kind kind() const override { return Kind::peer; }
  /// Is there such a link in this process?
  bool is_open() const override { return static_cast<bool>(own_); }

  bool may_reach(int rank) const override;
  bool reaches(int rank) const override;

  /// May its blocks come this way, as far as this process has found?
  bool may_read(int rank) const;

  /// Frees the memory of what was acknowledged, as reserve() does.
  void advance() override;

  /// Opens what that rank shares, and gives it the receive staging on `device` that it asks for.
  bool connect(int rank, int device) override {
    open_shared(rank, device);
    return may_read(rank);
  }
  bool is_read_by(int rank, int device) override;

  // Sending.

  /// In send staging, unless it may be, and has room, at the reader.
  bool reserve(const Reservation& wanted, Transfer& transfer) override;

  /// For one reader, in its receive staging, as the sender's device reaches it. False where it has
  /// none free: then it is asked for some, for later messages.
  bool reserve_at_reader(const Reservation& wanted, Transfer& transfer);

  /// Slots without memory, for a message that is exposed, or else goes by MPI. False where there
  /// are none, or the rank has opened nothing yet.
  bool reserve_bare(int rank, std::size_t chunks, std::uint64_t operation, Transfer& transfer);

  void lay_out(const Transfer& transfer) override;
  std::byte* place(const Transfer& transfer, std::size_t chunk, std::size_t) override {
    return transfer.place(chunk);
  }
  bool devices_publish() const override { return is_mapped_.load(std::memory_order_relaxed); }
  Report* report(const Transfer& transfer, std::size_t chunk) override;
  void publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) override;
  bool fail(const Transfer& transfer) override;
  void release(const Transfer& transfer) override;
  void abandon(const Transfer& transfer) override;
  void cancel(std::uint64_t operation) override;

  // Exposing memory of the program's.

  /// Where the rank has not opened the memory yet, it will be asked to.
  Exposure expose(const Transfer& transfer, int rank, int device, const void* data,
                  std::size_t bytes) override;

  enum class Offer : std::uint8_t {
    open,
    getting,   ///< the memory is in use
    returned,  ///< it is not any more, and the transfer is over, and released
  };

  /// What has become of the offer of a transfer to `rank`.
  Offer look_at_offer(const Transfer& transfer, int rank);

  /// Has its reader seen it, and waits for its turn?
  bool is_seen(const Transfer& transfer) const;

  /// Takes an offer back, to send the chunks after all, by MPI where the transfer has no memory.
  /// False where its reader gets it.
  bool withdraw(const Transfer& transfer, int rank);

  /// Tells the reader of a transfer without memory, before it hears of that, that its chunks come
  /// by MPI, and which block the next ones may be offered from. False where there is none such.
  bool introduce(const Transfer& transfer);

  // Receiving.

  /// Has this process ever been sent anything this way?
  bool is_used() const override { return is_used_.load(std::memory_order_relaxed); }

  /// A chunk as its reader sees it.
  struct Arrival {
    Slot::State state;
    const std::byte* data;  ///< device memory
    std::size_t bytes;
    int device;                ///< whose queues reach it
    std::uint32_t block;       ///< for open_block(), of what is `there`
    std::uint32_t serial = 0;  ///< for acknowledge_once(), of what this process gets
    bool is_near = false;      ///< it lies in receive staging, of `device`
  };

  bool knows(int rank, Route route, std::uint64_t chunks) override;
  int lands_on(int rank, Route route) override;
  std::unique_ptr<Inbound> receive(const Expected& expected) override;
  bool discard(int rank, Route route, std::uint64_t chunks) override;

  // Slots, as a reader sees them.

  /// Looks at a slot of `rank`'s, for queues of `device` if those reach it.
  Arrival look(int rank, std::uint64_t slot, int device);

  /// The block was read, and its memory is not needed any more.
  void acknowledge(int rank, std::uint64_t slot);

  /// The flag by which a queue of `device` acknowledges, in place of the host. Null where it
  /// cannot.
  std::uint32_t* acknowledge_flag(int rank, std::uint64_t slot, int device);

  // Getting what is exposed.

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

  /// acknowledge() for what this process got, where a device that failed may have done so by the
  /// flag, or not. It does nothing any more.
  void acknowledge_once(int rank, std::uint64_t slot, std::uint32_t serial);

  bool lives(int rank) const override;

  /// Has it ended? For who looks again and again, `looks` times until now: asked now and then.
  bool has_ended(int rank, std::uint64_t& looks) const;

  void close() override;
  void free_memory() override;

 private:
  class Reader;
  /// A block of send staging.
  struct Staging {
    int device;
    std::byte* memory;
    memory::Ranges free;
  };
  struct Sent {
    Transfer transfer;
    std::uint64_t operation;
    std::uint64_t begin;   ///< of its memory in the room that it is part of
    memory::Ranges* room;  ///< null: it has none
    Account* account;      ///< null: nobody's
  };
  /// A block of the program's that messages were sent from.
  struct Exported {
    std::uint32_t number = 0;  ///< in the segment
    bool is_shared = false;
    bool is_refused = false;  ///< it cannot be
  };
  /// How a rank answers offers.
  struct Getter {
    std::uint32_t misses = 0;  ///< offers in a row that it did not take
    std::uint32_t skip = 0;    ///< messages until it gets the next
  };
  struct Mapping {
    void* memory = nullptr;
    bool is_tried = false;
  };
  /// A block of a reader's receive staging for this process.
  struct RemoteStaging {
    SharedBlock block;
    memory::Ranges free;
    std::vector<Mapping> mappings;  ///< by device
  };
  struct RemoteStagings {
    std::deque<RemoteStaging> all;
    std::uint64_t bytes = 0;
    bool is_refused = false;  ///< it cannot be opened
    FullLooks full_looks;
  };
  /// A block of this process's receive staging, for one sender.
  struct ReceiveStaging {
    int device;
    std::byte* memory;
    std::uint64_t bytes;
  };
  /// A get under way.
  struct Reading {
    const Slot* slot = nullptr;
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
    std::atomic<bool> is_known{false};   ///< what it shares was looked at, and it was told so
    std::atomic<bool> has_room{false};   ///< its messages may lie in staging memory, either side's
    std::atomic<std::uint32_t> seen{0};  ///< blocks of its send staging that are opened
    std::atomic<bool> is_over{false};    ///< no more of them can be
    Opened staging;
    Opened blocks;
    std::vector<ReceiveStaging> receive_staging;
    std::uint64_t given_bytes = 0;           ///< of that
    std::uint64_t too_much = UINT64_MAX;     ///< bytes more that a device did not have
    std::atomic<std::uint64_t> answered{0};  ///< what it last wanted
    std::array<Reading, 2> readings;         ///< the last long offers that were taken
    std::uint64_t asked_ns = 0;              ///< when a long offer was last asked for
    std::uint64_t turn = 0;                  ///< its last one; 0: it has had none
    int mapped_by = gpu::host;               ///< the device that the segment was mapped with
    bool is_unmappable = false;
  };

  std::int32_t process_of(int rank) const;
  int index_of(int rank) const;
  bool is_connected(int rank) const;
  /// Of a rank of this host.
  Source& source_of(int rank) { return sources_[static_cast<std::size_t>(index_of(rank))]; }
  static const ReceiveStaging* receive_staging_of(const Source& source, const Slot& slot);
  /// As PeerSegment::reader has it.
  std::uint64_t own_reader() const { return static_cast<std::uint64_t>(own_->rank) + 1; }
  bool is_connected_to(const Source& source) const;
  bool is_free(const Source& source) const;
  Getter& getter_of(int rank) { return getters_[static_cast<std::size_t>(index_of(rank))]; }
  std::uint64_t limit_on(int device) const;
  std::uint64_t room_of(int rank, const Reservation& wanted, std::uint32_t& opened) const;
  bool reserve_staging(const Reservation& wanted, std::uint32_t opened, Transfer& planned);
  bool reserve_remote(const Reservation& wanted, RemoteStagings& staging, Transfer& planned);
  bool reserve_in(memory::Ranges* room, std::uint32_t staging, std::uint32_t receive_staging,
                  void* memory, const Reservation& wanted, Transfer& planned);
  void reclaim(std::size_t count);
  bool is_over(const Sent& sent) const;
  void acknowledge_all(const Transfer& transfer);
  void map_own(int device);
  void grow(int device, std::uint64_t bytes);
  std::byte* share_memory(int device, std::uint64_t bytes, std::uint64_t held, std::uint64_t left,
                          SharedBlock& block);
  Exposure find_exported(int device, const void* data, std::size_t bytes, Slot& slot);
  void note_miss(int rank);
  void open_shared(int rank, int device);
  void open_new(int rank, Source& source, int device);
  void give_receive_staging(Source& source, int device);
  static void* open_for(Opened& opened, std::uint32_t number, const SharedBlock& block, int& device,
                        int home);

  MappedSegment own_;
  std::array<std::uint8_t, 16> nonce_{};
  std::vector<HostRank> ranks_;  ///< of this host
  std::vector<int> index_;       ///< in ranks_, by rank in MPI_COMM_WORLD; negative: elsewhere
  std::size_t own_index_ = 0;
  std::size_t limit_ = 0;
  bool grows_ = false;
  mutable std::atomic<std::size_t> largest_limit_{0};  ///< of the first device that was asked
  Parameters parameters_;
  const char* other_way_ = nullptr;  ///< null: MPI alone

  std::mutex sending_;
  std::deque<Staging> staging_;
  std::size_t held_ = 0;             ///< bytes of that
  std::uint64_t until_growing_ = 0;  ///< reservations until memory is asked for again
  std::atomic<bool> cannot_share_{false};
  memory::Ranges free_slots_{PeerSegment::most_slots};
  std::deque<Sent> sent_;
  FullLooks full_looks_;  ///< of those
  /// By the first slot of a transfer: its sender has not done with it.
  std::array<std::atomic<bool>, PeerSegment::most_slots> is_held_{};
  int own_mapped_by_ = gpu::host;  ///< the device that the own segment was mapped with
  bool is_map_tried_ = false;
  std::atomic<bool> is_mapped_{false};
  std::uint32_t serial_ = 0;                              ///< of transfers
  std::unordered_map<std::uint64_t, Exported> exported_;  ///< by the block's id
  std::size_t exported_bytes_ = 0;
  std::vector<Getter> getters_;                 ///< as ranks_
  std::vector<RemoteStagings> remote_staging_;  ///< as ranks_

  std::mutex receiving_;
  std::vector<Source> sources_;  ///< as ranks_
  std::uint64_t given_ = 0;      ///< bytes of receive staging
  Source* latest_ = nullptr;     ///< whose long offer was taken last
  std::uint64_t turns_ = 0;
  std::atomic<bool> is_used_{false};
  std::atomic<bool> is_said_{false};  ///< that something cannot be opened
};

}  // namespace mpress::link
