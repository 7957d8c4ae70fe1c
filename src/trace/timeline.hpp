// What a rank did when: the latest events, kept in a file mapped into memory so that an abort
// cannot lose them.
//
// The file is a TimelineHeader followed by `capacity` slots; python/mpress/timeline.py reads it.
// Event number n lies in slot n % capacity, over that of a round before: the file is bounded, and
// what is lost is the oldest. Threads write without a lock: each takes a number, and a slot says
// whose number it holds only once all of it is written. All fields are native-endian.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "codec/spec.hpp"
#include "trace/record.hpp"

namespace mpress::trace {

/// What an event tells of. Where `device` is not negative, `encode`, `decode` and the copies run
/// from when they were given to a queue of that device to when the host saw them done: a device
/// does not tell when it began. The values are part of the file's format.
enum class Kind : std::uint8_t {
  send = 1,  ///< a message, from the sending call to its return
  receive,   ///< a message, from when its receive was posted to when it was the program's data
  encode,
  copy_out,  ///< from a device to the host
  wire,      ///< a chunk, from its hand-over to MPI to when MPI was seen to be done with it
  arrive,    ///< a chunk, from when its receive was posted to when it was seen to have come
  copy_in,   ///< from the host to a device
  decode,    ///< where on a device, with the copy to it
  wait,      ///< a call that blocks, for MPI
  wait_for_device,
  linger,  ///< chunks are given the time to leave
};

/// Of an event that belongs to no message in chunks, or to no chunk.
inline constexpr std::uint32_t no_number = 0xFFFFFFFF;

struct Event {
  std::uint64_t begin_ns = 0;  ///< of now_ns()
  std::uint64_t end_ns = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t wire_bytes = 0;       ///< 0: not known
  std::uint32_t message = no_number;  ///< the tag of its chunks
  std::uint32_t chunk = no_number;
  std::int32_t peer = any_peer;  ///< rank in MPI_COMM_WORLD
  std::int32_t device = -1;
  std::uint32_t thread = 0;  ///< set by note()
  Kind kind = Kind::send;
  Op op{};
  Codec codec = Codec::none;
  Reason reason = Reason::none;
};
static_assert(sizeof(Event) == 56);

struct TimelineHeader {
  char magic[8];  ///< "mpressT1"
  std::uint32_t header_bytes;
  std::uint32_t slot_bytes;
  std::uint64_t capacity;           ///< slots
  std::atomic<std::uint64_t> next;  ///< events so far, lost ones included
  std::uint64_t opened_ns;          ///< now_ns()
  std::uint64_t opened_wall_ns;     ///< since 1970, at the same moment
  std::int32_t rank;                ///< in MPI_COMM_WORLD
  std::uint32_t pid;
  char host[64];
};
static_assert(sizeof(TimelineHeader) == 120);

/// The timeline of this process. Thread-safe after open().
class Timeline {
 public:
  /// Maps `path`, created anew, with room for `capacity` events. Where that fails it stays off, and
  /// false is returned.
  bool open(const std::string& path, std::uint64_t capacity, int rank);

  bool is_on() const { return header_ != nullptr; }

  /// now_ns() where it is on: when something begins that will be noted.
  std::uint64_t now() const { return is_on() ? now_ns() : 0; }

  /// Keeps an event that is over. Only where it is on. Neither waits nor allocates.
  void note(Event event);

 private:
  struct Slot {
    std::atomic<std::uint64_t> number;  ///< of the event, from 1; 0: none, or it is being written
    Event event;
  };
  static_assert(sizeof(Slot) == 64);

  TimelineHeader* header_ = nullptr;
  Slot* slots_ = nullptr;
};

/// The process's, as its file is: all layers ask at every message whether it is on, which costs a
/// load of a fixed address, and links and pipelines that ask know no rank. Ranks that are threads
/// of one process leave it off.
inline constinit Timeline timeline;

/// Notes that a call of MPI has blocked; where the timeline is on.
inline void note_wait(Op op, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (!timeline.is_on()) return;
  timeline.note({.begin_ns = begin_ns, .end_ns = end_ns, .kind = Kind::wait, .op = op});
}

/// Notes the event that it was given when it goes out of scope, as ending then.
class Span {
 public:
  Span() = default;
  explicit Span(const Event& event) : event_(event), is_set_(timeline.is_on()) {}
  Span(Span&& other) noexcept { *this = static_cast<Span&&>(other); }
  Span& operator=(Span&& other) noexcept {
    end();
    is_set_ = other.is_set_;
    if (is_set_) event_ = other.event_;
    other.is_set_ = false;
    return *this;
  }
  ~Span() { end(); }

  void add_wire_bytes(std::size_t bytes) { event_.wire_bytes += bytes; }

 private:
  void end() {
    if (!is_set_) return;
    event_.end_ns = now_ns();
    timeline.note(event_);
  }

  Event event_;
  bool is_set_ = false;
};

}  // namespace mpress::trace
