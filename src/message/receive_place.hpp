// Where a message is received: in the program's buffer, or in staging beside it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "memory/buffer_pool.hpp"
#include "message/receive_buffer.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

/// Gapless buffers receive in place; the frame, never larger than the raw message, is decoded
/// where it lies. Scattered types that are floats, or begin with floats, receive into staging,
/// since a frame must not be strewn over the program's layout; and so does memory of a device,
/// which MPI need not be able to reach. An MPI that can receives there, without gaps, and what may
/// be a frame by its size is copied to the host afterwards. Other scattered types are received
/// where they lie: they get no frames but the headers of messages that leave a device, and whose
/// data follows.
class ReceivePlace {
 public:
  enum class Kind : std::uint8_t {
    unwatched,  ///< wherever the program says, and mpress does not look
    in_place,   ///< in the program's buffer, which has no gaps
    scattered,  ///< in the program's layout, which has
    remote,     ///< where the CPU cannot look, or perhaps not: in the program's buffer, or in such
                ///< memory beside it
    staged,     ///< beside it, in host memory
    aside,      ///< beside it, as it overlaps another receive's
  };

  explicit ReceivePlace(Messaging& messaging) : messaging_(messaging), buffer_(messaging) {}

  const ReceiveBuffer& buffer() const { return buffer_; }
  ReceiveBuffer& buffer() { return buffer_; }

  /// Of a buffer that is described: may a message there be a frame, or does it have to be unpacked?
  /// `may_be_frame`: as far as the caller knows.
  bool is_needed(bool may_be_frame);

  /// Then chooses the place. False where the message is left to MPI. `carries_frames`: the
  /// communicator does. `stays`: one place serves many messages. See lacks_memory().
  bool choose(bool carries_frames, bool stays);

  /// The same for a message that is no frame.
  bool choose_raw();

  /// The program's own buffer, where nothing was chosen.
  void choose_in_place();

  Kind kind() const { return kind_; }

  /// Is there no memory to receive in? Left to MPI, a frame would be strewn over the program's
  /// layout.
  bool lacks_memory() const { return (kind_ == Kind::staged || kind_ == Kind::aside) && !staging_; }

  std::byte* data() const { return staging_ ? staging_.data() : buffer_.data(); }

  /// Where not 0: as many packed units of the layout are received there. A frame is a whole number
  /// of those, but not of larger items.
  std::int64_t packed_units() const { return packed_units_; }

  // Receives that overlap.

  /// Does the message go straight to memory of the program's, and may it be a frame?
  bool is_in_place() const {
    return (kind_ == Kind::in_place || kind_ == Kind::remote) && !staging_;
  }
  /// Another receive in flight is in place where this would be: receives into staging.
  void stage_aside();
  /// The opposite: others receive in the same place, at any time.
  void contest() { is_contested_ = true; }
  bool is_contested() const { return is_contested_; }
  /// For another message: who has contested the last one says so again before it lays out its own.
  void renew() {
    buffer_.renew();
    is_contested_ = false;
  }

  // Once a message has come:

  /// Before anybody looks at it.
  void locate();

  using Beginning = std::array<std::byte, wire::min_frame_bytes>;
  /// Its first bytes, without gaps, there or in `copy`; null where they cannot be copied.
  const std::byte* beginning(Beginning& copy) const;

  /// Copies the first `bytes` bytes, of a message without gaps.
  Status copy_to_host(std::byte* to, std::size_t bytes) const;

  /// Copies a frame of a contested receive before others write to the program's buffer, where there
  /// is memory for that.
  void save(std::size_t bytes);

  Destination destination() { return buffer_.destination(is_aside() || is_contested_); }

  /// Lays packed data out in the program's buffer.
  Status lay_out(const std::byte* packed, std::size_t bytes) const;

 private:
  /// Does it lie beside the program's buffer, which other receives have, too?
  bool is_aside() const {
    return kind_ == Kind::aside ||
           (kind_ == Kind::remote && staging_ && buffer_.layout().contiguous);
  }
  void stage(Kind kind);
  void stage_packed();
  void receive_packed();
  void let_others_leave() const;

  Messaging& messaging_;
  ReceiveBuffer buffer_;
  memory::Buffer staging_;
  std::int64_t packed_units_ = 0;
  Kind kind_ = Kind::unwatched;
  std::atomic<bool> is_contested_{false};
};

}  // namespace mpress::engine
