// The codec layer: elements <-> bytes. It knows nothing of MPI, ranks or links.
//
// A payload decodes from its bytes, the spec's codec (for zfp also its rate), the element type
// and the element count alone; those travel beside it (in a frame's header, or in the object
// that Python's encode returns).
#pragma once

#include <cstddef>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/grid.hpp"
#include "codec/range.hpp"
#include "codec/spec.hpp"
#include "codec/status.hpp"
#include "codec/summand.hpp"

namespace mpress::codec {

/// That of szp with an absolute bound.
inline Grid grid_of(const Spec& spec) {
  Grid grid(spec.value, spec.slack);
  grid.step = spec.step;
  return grid;
}

/// The largest payload that encode() can write for `count` elements. Codecs never need more
/// than the raw size plus a small constant (zfp at full rate plus its trailer excepted).
std::size_t max_payload_bytes(const Spec& spec, ElementType type, std::size_t count);

/// Turns a spec into the one that encodes this message: a relative bound becomes absolute (of
/// elements that are all alike the least there is, on a grid that has them) and mpc's distance is
/// chosen. Encoding with the result does no further pass over the data.
Spec resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count);

/// The same with a range given from outside, of more elements than these: the payload is the one
/// that elements with this range of their own have.
Spec resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count,
             const Range& range);

/// Encodes `count` elements (any alignment) into `payload`, which has room for
/// max_payload_bytes(). Returns the payload's size. `spec` is valid for `type` and names a
/// codec: not `none`, not `auto`. Uses no heap and, as all calls of this layer, at most 5 KB of
/// stack: what a unit needs is leased (codec/scratch.hpp). Thread-safe.
std::size_t encode(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                   void* payload);

/// Decodes exactly `count` elements (any alignment), or combines them with those that are there, a
/// unit at a time within the cache. The payload is untrusted: whatever its
/// bytes, decode() reads nothing beyond `bytes`, writes nothing beyond `count` elements, ends,
/// and reports what it found; on an error the contents of `elements` are unspecified.
Status decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
              void* elements, std::size_t count, Combine how = Combine::replace);

/// The bound on the error of the elements, as the beginning of an untrusted payload has it. 0: it
/// has none, or holds the elements, or is too short.
double told_bound(const Spec& spec, const void* payload, std::size_t bytes);

/// Adds untrusted payloads of one spec, 2 to most_summands of `count` elements each, or elements,
/// which count as what encode() makes of them: `out` becomes the payload of their sums, without
/// going through the elements. szp can do that (codec/szp/format.hpp has what each status means);
/// other codecs are unsupported. `out` has room for max_payload_bytes() and overlaps no summand;
/// null: the elements alone are wanted. `decoded`, unless null, is where the sum's elements go.
/// `out_bytes` is what was written, 0 without success.
Status add(const Spec& spec, ElementType type, std::span<const Summand> summands, std::size_t count,
           void* out, std::size_t& out_bytes, void* decoded = nullptr);

}  // namespace mpress::codec
