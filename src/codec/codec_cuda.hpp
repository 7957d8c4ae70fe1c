// The CUDA twins of the codecs: the same payloads as codec/codec.hpp, byte for byte, written and
// read on a GPU.
//
// Every call is ordered on a stream; none allocates, synchronises or touches the default stream,
// so calls may be captured into CUDA graphs. A call takes a batch of segments and serves all of
// them with the same launches. It works on the current device; buffers are memory that this
// device can access. Elements need the alignment of their type only, payloads 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/range_of.hpp"
#include "codec/report.hpp"
#include "codec/spec.hpp"
#include "codec/status.hpp"

namespace mpress::codec::cuda {

/// What the device reports of a segment. In memory that the device may write to: mapped pinned
/// host memory for a host that polls, or device memory. `sequence` is never 0, and differs from the
/// one before, whether the call was made or replayed from a graph, so long as a Result is used with
/// one workspace. The store is a release at the scope of the system (support.cuh, report()):
/// whoever acquires `sequence`, on any host, device or process, finds the payload complete, also
/// one in memory of a peer device.
using Result = Report;

struct EncodeSegment {
  const void* elements;
  std::size_t count;
  void* payload;  ///< room for codec::max_payload_bytes()
  Result* result;
};

struct DecodeSegment {
  const void* payload;
  std::size_t bytes;  ///< of the payload; where `encoded` is given, room of the payload
  void* elements;
  std::size_t count;
  Result* result;
  /// Device-readable: the payload's report, where its size is found instead.
  const Result* encoded = nullptr;
};

/// A payload to be added; more than one summand may be the same.
struct Summand {
  const void* payload;
  std::size_t bytes;                ///< where `encoded` is given, room of the payload
  const Result* encoded = nullptr;  ///< device-readable: its report, which tells the size
  /// Elements lie there, aligned as their type, which count as what encode() makes of them; `bytes`
  /// does not count.
  bool is_elements = false;
};

struct AddSegment {
  std::span<const Summand> summands;  ///< 2 to most_summands; read during the call
  std::size_t count;                  ///< elements of each
  void* payload;                      ///< room for codec::max_payload_bytes(); overlaps no summand
  Result* result;
  /// Unless null, where the sum's elements go, as decode() has them: aligned as their type,
  /// overlapping no summand, unspecified without success.
  void* decoded = nullptr;
};

using codec::Combine;

/// Bytes of device memory that a call over segments of `count` elements in all needs. A workspace
/// is 256-byte aligned and zero-filled before its first use; each call leaves it fit for the next.
/// It serves one call at a time, in stream order, and any call that needs no more than its size.
std::size_t workspace_bytes(const Spec& spec, ElementType type, std::size_t count,
                            std::size_t segments);

using codec::RangeOf;
/// Segments of a call that have one range, by RangeOf::call.
inline constexpr std::size_t max_common_range = 256;

/// Encodes every segment; its Result tells the payload's size. `spec` is valid for `type` and names
/// a codec. Segments are worked on in their order, so that the first of a few long ones is reported
/// when about its share of the time has passed. `extents`, for RangeOf::given, which means the
/// range of all of them together: one or more in memory that the device reads when the call's work
/// begins, whose minima and maxima are values of `type`. Payloads are those of elements that had
/// this range of their own.
cudaError_t encode(const Spec& spec, ElementType type, std::span<const EncodeSegment> segments,
                   void* workspace, cudaStream_t stream, RangeOf range = RangeOf::segment,
                   std::span<const Extent> extents = {});

/// Decodes exactly `count` elements of every segment, and combines them with those that are there.
/// Payloads are untrusted, as on the host: the Result's status tells what was found.
cudaError_t decode(const Spec& spec, ElementType type, std::span<const DecodeSegment> segments,
                   Combine combine, void* workspace, cudaStream_t stream);

/// Adds the payloads of every segment, in quanta; codec/szp/format.hpp says what that promises.
/// Payloads are untrusted: each Result has the Status that the host's add() returns, or the one
/// that a summand's own report has; `bytes` is 0 where that is not ok, and the payload unspecified.
/// cudaErrorInvalidValue where `spec` is of a codec that has no sums: all but szp.
cudaError_t add(const Spec& spec, ElementType type, std::span<const AddSegment> segments,
                void* workspace, cudaStream_t stream);

/// What a relative bound refers to: writes the range of the finite elements (codec/range.hpp) to
/// `extent`, in memory that the device may write to, in stream order, with `sequence` in it. It is
/// written as a Result is. The workspace is one for szp.
cudaError_t finite_extent(ElementType type, const void* elements, std::size_t count,
                          void* workspace, Extent* extent, std::uint32_t sequence,
                          cudaStream_t stream);

}  // namespace mpress::codec::cuda
