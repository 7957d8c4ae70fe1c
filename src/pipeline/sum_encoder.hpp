// Payloads of szp added up in quanta, chunk by chunk, as one more way in which chunks are made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "codec/summand.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

/// One rank's contribution to a sum: an opaque block, whole or under way, or elements that are
/// there.
struct Summand {
  std::shared_ptr<const OpaqueBlock> opaque;
  const std::byte* elements = nullptr;  ///< without an opaque block

  /// Of a chunk that is there: is it a payload? If not, its elements.
  bool is_payload(std::uint64_t chunk) const { return opaque && !opaque->chunk(chunk).is_elements; }
  const std::byte* elements_of(const Chunking& cut, std::uint64_t chunk) const {
    return opaque ? opaque->chunk(chunk).data : elements + cut.offset(chunk);
  }
};

/// How many chunks of all summands are there.
std::uint64_t ready_chunks(std::span<const Summand> summands, const Chunking& cut);

/// Of summands whose chunks will not all come: a status.
Status status_of(std::span<const Summand> summands);

/// The turns in which summands are added, since a codec takes a few at a time: the first takes as
/// many as that, each other one what there is so far, and more.
class SummandTurns {
 public:
  /// `summands`: two or more.
  explicit SummandTurns(std::size_t summands) : summands_(summands), left_(turns_of(summands)) {
    end_ = std::min(codec::most_summands, summands);
  }

  bool are_over() const { return left_ == 0; }
  /// Of those that this turn adds, to what there is so far.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  /// Does the sum go where it is wanted, or elsewhere? By turns, as it may not overlap what is
  /// added, so that the last comes to its place.
  bool goes_to_place() const { return left_ % 2 == 1; }

  void next() {
    begin_ = end_;
    end_ = std::min(end_ + codec::most_summands - 1, summands_);
    --left_;
  }

 private:
  static std::size_t turns_of(std::size_t summands) {
    constexpr std::size_t more = codec::most_summands - 1;
    return (summands - 1 + more - 1) / more;
  }

  std::size_t summands_;
  std::size_t begin_ = 0, end_;
  std::size_t left_;
};

/// Adds up chunks of `summands`, two or more, all cut as `cut` says, on the host: for
/// sum_encoder(), which says what becomes of them, and for who wants the elements of the sum alone.
class HostSum {
 public:
  HostSum(Runtime& runtime, const Chunking& cut, std::vector<Summand> summands)
      : runtime_(runtime), cut_(cut), summands_(std::move(summands)) {}

  const Chunking& cut() const { return cut_; }
  std::uint64_t ready() const { return ready_chunks(summands_, cut_); }
  Status status() const { return status_of(summands_); }

  /// Makes the sum of a chunk that is ready: in `place`, where `made` tells what it is, and its
  /// elements in `decoded`. One of both may be null. False: there is no memory.
  bool make(std::uint64_t chunk, std::byte* place, std::byte* decoded, Made& made);

 private:
  bool has_room(memory::Buffer& buffer, std::size_t bytes);
  bool add_quanta(std::uint64_t chunk, std::byte* place, std::byte* decoded, std::size_t& bytes);
  bool add_elements(std::uint64_t chunk, std::byte* place);

  Runtime& runtime_;
  const Chunking cut_;
  const std::vector<Summand> summands_;
  memory::Buffer scratch_[2];
  memory::Buffer sums_;
};

/// Makes the sum of `summands`, two or more, all cut as `cut` says, in memory of `device` or of the
/// host, like the slots. Elements among them count as what the cut's spec makes of them, so that
/// a rank's contribution to its own piece is not encoded. A chunk whose sum is one of quanta
/// becomes its payload. Any other comes as elements, by codec::combine_in_any_order() on the grid
/// of the quanta: so the result depends on the contributions alone, not on the order of the
/// summands, on where they lie, nor on how they are cut. Chunks are made as those of all summands
/// come; where those of one will not, that is an error. Null where memory is short, or the device
/// refuses. `decoded`: null, or where the elements of the sum go, as who decodes it has them: there
/// with each chunk, aligned, overlapping no summand.
std::unique_ptr<Encoder> sum_encoder(Runtime& runtime, const Chunking& cut, int device,
                                     Slots& slots, std::vector<Summand> summands,
                                     std::byte* decoded);

/// The one of a device.
std::unique_ptr<Encoder> device_sum_encoder(Runtime& runtime, const Chunking& cut, int device,
                                            Slots& slots, std::vector<Summand> summands,
                                            std::byte* decoded);

}  // namespace mpress::engine
