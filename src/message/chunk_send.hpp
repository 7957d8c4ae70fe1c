// The sending side of a message whose data follows apart from its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "codec/spec.hpp"
#include "core/region.hpp"
#include "core/status.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "message/send.hpp"
#include "pipeline/chunking.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Messaging;
struct Message;
struct Choice;

/// The elements of a message.
struct Elements {
  Region region;
  memory::Buffer packed = {};  ///< where they lie, if they had gaps
};

/// Slots, of `room` bytes each, for the chunks of a message to `readers`, ranks in MPI_COMM_WORLD.
link::Reservation reservation(const Chunking& cut, std::span<const int> readers, int device,
                              std::size_t room, std::uint64_t operation);

/// A message to one reader whose header announces chunks. Each protocol is a class.
class ChunkSend : public Send {
 public:
  /// Notes what all such messages have in common.
  ChunkSend(Messaging& messaging, const Message& message, const Spec& spec, const Region& region,
            std::size_t chunk_bytes);
  ~ChunkSend() override;

  /// Its receiver is to tell how long it takes, for what the policy has to decide about. Before
  /// anything is reserved.
  void time(const policy::Subject& subject);

  const wire::Header& header() const { return header_; }

  /// Makes the message's beginning of the header, which is complete. False where memory is short.
  bool announce();

  /// Counts in `row` what the data takes and gives. `span`: the call, for the timeline.
  void count_in(trace::Row& row, trace::Span span);

  virtual trace::Way way() const = 0;

  /// Why a way between devices was not the shortest.
  virtual trace::Fallback fallback() const { return trace::Fallback::none; }

  /// After count_in().
  bool advance(bool waits_for_more) final;

 protected:
  virtual bool proceed(bool waits_for_more) = 0;
  virtual std::size_t sent_bytes() const = 0;  ///< of all chunks, once proceed() returned true
  virtual std::uint64_t took_ns() const = 0;

  /// The chunks will come by `kind`, in the slots from `first` on.
  void route(link::Kind kind, std::uint32_t first);

  std::uint32_t number() const;  ///< of its route

  Chunking cut() const { return Chunking::of(header_, peer_); }

  /// What a link has to reserve for chunks of up to `room` bytes.
  link::Reservation reservation(int device, std::size_t room, link::Account* account) const;

  Messaging& messaging_;
  const int peer_;
  wire::Header header_;

 private:
  trace::Row* row_ = nullptr;
  trace::Span span_;
  std::optional<policy::Subject> subject_;  ///< what the policy learns from it, if anything
  bool is_timed_ = false;
  bool is_over_ = false;
};

/// Plans to send a message in chunks by the channel. Null, and `elements` is as before, where the
/// message should go in one piece: memory is short, a device refuses, or the first chunk did not
/// become smaller. That is encoded at once. Elements in host memory need a spec that names a codec,
/// or are to be timed raw. They stay valid until advance() returns true, or lie in `packed`.
std::unique_ptr<ChunkSend> send_by_channel(Messaging& messaging, const Message& message,
                                           const Choice& choice, Elements& elements);

/// The same by slots of a link between devices that may reach the receiver, for elements on a
/// device and a message of any size from Links::least_bytes_between_devices on. Null where there
/// are none that the receiver has opened. Takes no longer than giving a device its work does.
std::unique_ptr<ChunkSend> send_by_link(Messaging& messaging, const Message& message,
                                        const Spec& spec, Elements& elements,
                                        const link::Attributes& about);

/// The same as by the peer link without a copy here, for elements that stay as they are in the
/// program's buffer until advance() returns true: they are offered to the peer, who gets them. What
/// it does not get goes by slots of the peer link after all, or, where those have no memory, by
/// MPI.
std::unique_ptr<ChunkSend> send_by_offer(Messaging& messaging, const Message& message,
                                         Elements& elements);

/// Bytes of elements in each chunk by a link between devices: large messages go in several, so that
/// encoding, the copies and decoding overlap.
std::size_t chunk_bytes_by(const link::Attributes& link, const Messaging& messaging,
                           const Message& message, bool encodes);

}  // namespace mpress::engine
