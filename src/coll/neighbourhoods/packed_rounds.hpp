// Runs a schedule of a neighbourhood by message combining: the blocks of a transfer are one message
// of MPI's, and a process passes on what is not for it as it came.
//
// Short blocks go so, for which no codec pays and of which messages cost the most. What a process
// passes on stays where MPI has put it; packed are only transfers of several blocks. Where blocks
// are long enough to be encoded, and the program has them combined all the same, a message begins
// with what each of its blocks takes, and blocks are frames or raw (frames.hpp).
#pragma once

#include <cstddef>
#include <vector>

#include "coll/neighbourhoods/exchange.hpp"
#include "coll/neighbourhoods/frames.hpp"
#include "coll/neighbourhoods/raw_messages.hpp"
#include "coll/team.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// Raises nothing. One thread at a time calls it. Where there is no memory others get nothing, and
/// an error.
class PackedRounds {
 public:
  /// `exchange`, `way` and `frames` outlive it. `frames`: null where no block is encoded, as all
  /// processes know.
  PackedRounds(Messaging& messaging, trace::Called called, const Team& team, int tag,
               const Exchange& exchange, const Way& way, Frames* frames);

  /// Posts all receives, and sends what the first round sends. Not while it is under way.
  void start();

  /// Lets it proceed, and waits for no rank. True once it is over.
  bool advance();

  /// For a call that blocks, between two calls of advance(): waits for the messages that come next.
  bool wait();

  Status status() const { return messages_.status(); }

 private:
  /// A transfer, as one message.
  struct Message {
    const schedule::Transfer* transfer;
    std::size_t bytes;
    std::size_t at;           ///< in the memory of this
    const BlockData* direct;  ///< in the program's memory, instead; null: it is packed
    std::uint32_t passed_on;  ///< or where this entry came; none: Passages::own
    std::size_t wire_bytes;   ///< that were sent, or have come
    Codec codec;              ///< of any of its frames
  };
  /// What precedes the blocks of a message where there are frames, for each of them.
  struct Length {
    std::uint64_t bytes : 56;
    std::uint64_t codec : 8;  ///< of a frame; 0: the block as it is
  };

  void lay_out();
  Message message_of(const schedule::Transfer& transfer, bool is_received, std::size_t& end) const;
  std::size_t needed() const;
  bool proceed();
  void send_round();
  BlockData ready(Message& message);
  BlockData ready_framed(Message& message);
  void unpack(const Message& message);
  bool read_lengths(Message& message, std::size_t bytes);
  void measure(std::size_t number);
  void unpack_framed(const Message& message);
  std::size_t room(std::uint32_t part) const {
    return exchange_.sizes[part] + (frames_ ? sizeof(Length) : 0);
  }
  void pack(const BlockData& from, std::byte* to);
  void unpack(std::byte* from, std::size_t bytes, const BlockData& to);
  void copy(const BlockData& from, const BlockData& to);

  Messaging& messaging_;
  const Exchange& exchange_;
  const Way& way_;
  Frames* const frames_;
  const bool is_plain_;  ///< all blocks are the host's, without gaps
  std::vector<Message> receives_;
  std::vector<Message> sends_;
  /// Of each entry of the schedule that is received: where it is, in the program's memory, or in
  /// that of this.
  struct Place {
    std::byte* programs;
    std::size_t at;
  };
  std::byte* address(const Place& place) const {
    return place.programs ? place.programs : memory_.data() + place.at;
  }
  std::vector<Place> places_;
  std::vector<Length> lengths_;  ///< of each entry that has come, where there are frames
  std::size_t bytes_ = 0;
  memory::Buffer memory_;
  RawMessages messages_;
  std::size_t unpacked_ = 0;  ///< of the receives, those that are where they belong
  std::size_t measured_ = 0;  ///< and those of which it is known what their blocks take
  std::size_t next_send_ = 0;
};

}  // namespace mpress::engine
