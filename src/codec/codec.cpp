#include "codec/codec.hpp"

#include <cstring>

#include "codec/float_environment.hpp"
#include "codec/mpc/format.hpp"
#include "codec/range.hpp"
#include "codec/szp/format.hpp"
#include "codec/zfp/format.hpp"

namespace mpress::codec {

std::size_t max_payload_bytes(const Spec& spec, ElementType type, std::size_t count) {
  switch (spec.codec) {
    case Codec::mpc: return mpc::max_bytes(type, count);
    case Codec::zfp: return zfp::max_bytes(type, count, zfp_block_bits(spec.value, type));
    case Codec::szp: return szp::max_bytes(type, count);
    case Codec::none:
    case Codec::automatic: break;
  }
  return 0;
}

Spec resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count) {
  const bool relative = spec.bound == Bound::rel;
  return resolve(spec, type, elements, count,
                 relative ? finite_range(type, elements, count) : Range{});
}

Spec resolve(const Spec& spec, ElementType type, const void* elements, std::size_t count,
             const Range& range) {
  Spec resolved = spec;
  if (spec.codec == Codec::mpc && spec.dim == 0) {
    resolved.dim = static_cast<std::uint8_t>(mpc::choose_dim(type, elements, count));
  }
  if (spec.bound == Bound::rel) {
    const Grid grid = compute([&] {
      return type == ElementType::f32
                 ? szp::relative_grid<float>(spec.value, range.min, range.max)
                 : szp::relative_grid<double>(spec.value, range.min, range.max);
    });
    resolved.bound = Bound::abs;
    resolved.value = grid.bound;
    resolved.step = grid.step;
  }
  return resolved;
}

std::size_t encode(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                   void* payload) {
  const Spec resolved = resolve(spec, type, elements, count);
  switch (resolved.codec) {
    case Codec::mpc: return mpc::encode(type, elements, count, resolved.dim, payload);
    case Codec::zfp:
      return zfp::encode(type, elements, count, zfp_block_bits(resolved.value, type), payload);
    case Codec::szp:
      return szp::encode(type, elements, count, grid_of(resolved), resolved.mode, payload);
    case Codec::none:
    case Codec::automatic: break;
  }
  return 0;
}

Status decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
              void* elements, std::size_t count, Combine how) {
  switch (spec.codec) {
    case Codec::mpc: return mpc::decode(type, payload, bytes, elements, count, how);
    case Codec::zfp:
      return zfp::decode(type, payload, bytes, zfp_block_bits(spec.value, type), elements, count,
                         how);
    case Codec::szp: return szp::decode(type, payload, bytes, elements, count, how);
    case Codec::none:
    case Codec::automatic: break;
  }
  return Status::unsupported;
}

double told_bound(const Spec& spec, const void* payload, std::size_t bytes) {
  return spec.codec == Codec::szp ? szp::told_bound(payload, bytes) : 0;
}

Status add(const Spec& spec, ElementType type, std::span<const Summand> summands, std::size_t count,
           void* out, std::size_t& out_bytes, void* decoded) {
  out_bytes = 0;
  if (spec.codec != Codec::szp) return Status::unsupported;
  return szp::add(type, summands, count, out, out_bytes, {grid_of(spec), spec.mode}, decoded);
}

}  // namespace mpress::codec
