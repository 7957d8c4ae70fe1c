// The codec layer on a device: elements of its memory encoded, decoded, added up and combined by
// work in a queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/range_of.hpp"
#include "codec/report.hpp"
#include "codec/spec.hpp"
#include "codec/summand.hpp"
#include "gpu/queue.hpp"

namespace mpress::gpu {

using codec::Combine;
using codec::RangeOf;

/// Elements to be encoded, and where their payload goes: 16-byte aligned, with room for
/// codec::max_payload_bytes().
struct Piece {
  const void* elements;
  std::size_t count;
  void* payload;
  /// Where the device publishes the payload without this process's host: in memory from Gpu::map(),
  /// which other processes may map too. Null: only query() tells. encode() sets `sequence` to 0.
  /// Until query() has said that the piece, or one given later, is done or failed, nobody else
  /// writes there and the memory stays mapped. A piece that fails may never report: the host that
  /// gave it finds that by query(), and tells the readers in its own way.
  Report* published = nullptr;
};

/// A payload to be decoded, 16-byte aligned. Nobody has checked it.
struct Incoming {
  const void* payload;
  std::size_t bytes;
  void* elements;
  std::size_t count;
  /// Where the host does not know the size yet: the payload's report, in memory from Gpu::map(),
  /// which is there when the work begins (Queue::wait()). Then `bytes` is what the payload has room
  /// in. Every thread block reads it over the bus.
  const Report* report = nullptr;
};

/// A payload to be added, untrusted.
struct Summand {
  const void* payload;
  std::size_t bytes;
  const Report* report = nullptr;  ///< as an Incoming's
  /// Elements lie there, aligned as their type, which count as what the spec makes of them; `bytes`
  /// does not count.
  bool is_elements = false;
};

/// Payloads to be added, 2 to codec::most_summands; more than one may be the same.
struct Sum {
  std::span<const Summand> summands;  ///< read during the call
  std::size_t count;                  ///< elements of each
  void* payload;                      ///< as a Piece's; overlaps no summand
  Report* published = nullptr;        ///< as a Piece's
  /// Unless null, where the sum's elements go, as decode() has them: aligned as their type,
  /// overlapping no summand, unspecified where the sum is none of quanta.
  void* decoded = nullptr;
};

/// A queue as Queue::codecs() has it: order, threads and memory are the Queue's, which also tells
/// of events.
class CodecQueue {
 public:
  /// Writes the range of the finite elements of the queue's device, and whether there are others,
  /// to `extent`: host memory that devices reach, from Gpu::map() or pinned. `sequence`: not what
  /// is there. Whoever reads it there, or has a queue wait() for it, finds the rest written.
  virtual Event extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
                       std::uint32_t sequence) = 0;

  /// The spec that encodes these elements of the queue's device: a relative bound becomes absolute
  /// (codec::resolve()). Waits for the device where there is one.
  virtual Spec resolve(const Spec& spec, ElementType type, const void* elements,
                       std::size_t count) = 0;

  /// Encodes pieces, one or more and at most `most_pieces`, in one go: each has an event of its
  /// own, the next after that of the piece before. Returns the first. Elements are on the queue's
  /// device, aligned as their type; payloads there, in memory opened for it, or in the host's from
  /// Gpu::map(). `spec` names a codec; a relative bound is of the range that `range` names: each
  /// piece's own, that of all pieces together, or, for RangeOf::given, that of all that `extents`
  /// tell of together. Those are read when the work begins, in memory as for extent(): they may be
  /// those of other ranks, for which the queue waits. Their bounds are values of `type`.
  virtual Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
                       RangeOf range, std::span<const Extent> extents) = 0;
  static constexpr std::size_t most_pieces = 256;

  Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
               RangeOf range = RangeOf::call) {
    return encode(spec, type, pieces, range, {});
  }
  /// By the range that `extents` tell of, or, where there are none, that of all pieces.
  Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
               std::span<const Extent> extents) {
    return encode(spec, type, pieces, extents.empty() ? RangeOf::call : RangeOf::given, extents);
  }
  Event encode(const Spec& spec, ElementType type, const void* elements, std::size_t count,
               void* payload) {
    const Piece piece{elements, count, payload};
    return encode(spec, type, {&piece, 1});
  }

  /// Decodes payloads, one or more and at most `most_pieces`, in one go, and combines the elements
  /// with those that are there; events as for encode(). Memory as for encode(), on the queue's
  /// device; elements of different payloads do not overlap. Where a payload is found wrong, its
  /// elements are unspecified.
  virtual Event decode(const Spec& spec, ElementType type, std::span<const Incoming> payloads,
                       Combine how) = 0;

  Event decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
               void* elements, std::size_t count, Combine how = Combine::replace) {
    const Incoming incoming{payload, bytes, elements, count};
    return decode(spec, type, {&incoming, 1}, how);
  }

  /// Adds payloads of a codec that has sums, in quanta, to one or more sums and at most
  /// `most_pieces`, in one go; events as for encode(). The Outcome's status is not ok where that
  /// codec says so on the host, codec::Status::inexact among others; the sum's payload is
  /// unspecified then.
  virtual Event add(const Spec& spec, ElementType type, std::span<const Sum> sums) = 0;

  /// Combines inputs of `count` elements each, in their order: the first with the second, what
  /// comes of it with the third, and so on. All are on the queue's device and aligned as their
  /// type; `out` may be one of them. `wide`: sums are made in double precision, and rounded once.
  virtual Event combine(Combine how, ElementType type, std::span<const void* const> inputs,
                        void* out, std::size_t count, bool wide) = 0;
  static constexpr std::size_t most_inputs = 256;  ///< one or more, and at most

  /// As codec::combine_in_any_order(); memory as for combine(). The array of more than
  /// `most_inputs` lies in memory of the host that is pinned, until the work is done.
  virtual Event combine_in_any_order(Combine how, ElementType type,
                                     std::span<const void* const> inputs, void* out,
                                     std::size_t count, const codec::Grid& grid) = 0;

 protected:
  ~CodecQueue() = default;
};

}  // namespace mpress::gpu
