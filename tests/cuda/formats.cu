// The codecs' formats in device code: what NAME.hpp shares between twins must compile there. One
// kernel a codec, around the functions that a twin is made of; they are compiled, not run.
#include "codec/mpc.hpp"
#include "codec/szp.hpp"
#include "codec/zfp_block.hpp"

namespace mpress::codec {

__device__ constexpr zfp::Tables zfp_tables{};

template <typename Element, int Words>
__global__ void zfp_blocks(const Element* in, unsigned budget, std::uint64_t* out, bool* exceptions,
                           Element* decoded) {
  const unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
  typename zfp::Traits<Element>::Word x[4];
  for (int i = 0; i < 4; ++i) memcpy(&x[i], &in[block * 4 + i], sizeof x[i]);
  zfp::BlockBits<Words> bits;
  exceptions[block] = zfp::encode_block<Element, Words>(x, budget, zfp_tables, bits);
  for (int i = 0; i < Words; ++i) out[block * Words + i] = bits.word[i];
  Element values[4];
  zfp::decode_block<Element, Words>(bits, budget, zfp_tables, values);
  for (int i = 0; i < 4; ++i) decoded[block * 4 + i] = values[i];
}

template __global__ void zfp_blocks<float, 1>(const float*, unsigned, std::uint64_t*, bool*, float*);
template __global__ void zfp_blocks<double, 4>(const double*, unsigned, std::uint64_t*, bool*,
                                               double*);

template <typename Word>
__global__ void mpc_residuals(const Word* in, mpc::UnitWord unit, Word* residuals, Word* decoded) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const mpc::Scale<Word> scale = mpc::scale_of<Word>(unit);
  const Word before = i == 0 ? Word{0} : mpc::to_ordered(in[i - 1], scale);
  residuals[i] = mpc::zigzag<Word>(mpc::to_ordered(in[i], scale) - before);
  decoded[i] = mpc::from_ordered<Word>(mpc::unzigzag(residuals[i]) + before, scale);
}

template __global__ void mpc_residuals(const std::uint32_t*, mpc::UnitWord, std::uint32_t*,
                                       std::uint32_t*);
template __global__ void mpc_residuals(const std::uint64_t*, mpc::UnitWord, std::uint64_t*,
                                       std::uint64_t*);

template <typename Element>
__global__ void szp_quanta(const Element* in, szp::Quantizer<Element> quantizer,
                           typename szp::Traits<Element>::Quantum* quanta, bool* exceptions) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  exceptions[i] = !szp::quantize(quantizer, in[i], quanta[i]);
}

template __global__ void szp_quanta(const float*, szp::Quantizer<float>, std::int32_t*, bool*);
template __global__ void szp_quanta(const double*, szp::Quantizer<double>, std::int64_t*, bool*);

}  // namespace mpress::codec
