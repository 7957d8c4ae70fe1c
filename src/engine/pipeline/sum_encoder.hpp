// Payloads of szp added up in quanta, chunk by chunk, as one more way in which chunks are made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/pipeline/encoder.hpp"
#include "engine/pipeline/opaque_block.hpp"

namespace mpress::engine {

/// What one rank brings to a sum: an opaque block, whole or under way, or elements that are there.
struct Summand {
  std::shared_ptr<const OpaqueBlock> opaque;
  const std::byte* elements = nullptr;  ///< without an opaque block

  /// Of a chunk that is there: is it a payload? If not, its elements.
  bool is_payload(std::uint64_t chunk) const { return opaque && !opaque->is_elements(chunk); }
  const std::byte* elements_of(const Chunking& cut, std::uint64_t chunk) const {
    return opaque ? opaque->chunk(chunk).data : elements + cut.offset(chunk);
  }
};

/// Makes the sum of `summands`, two or more, all cut as `cut` says, in memory of `device` or of the
/// host, like the slots. A chunk whose sum is one of quanta becomes its payload. Any other comes as
/// elements: those of all summands, added up in the order of the summands, in double precision, and
/// rounded once. So the result depends on the summands alone, and not on where they lie. Chunks are
/// made when those of all summands are there. Null where memory is short, or the device refuses.
std::unique_ptr<Encoder> sum_encoder(Job& job, const Chunking& cut, int device, Slots& slots,
                                     std::vector<Summand> summands);

/// The one of a device.
std::unique_ptr<Encoder> device_sum_encoder(Job& job, const Chunking& cut, int device, Slots& slots,
                                            std::vector<Summand> summands);

}  // namespace mpress::engine
