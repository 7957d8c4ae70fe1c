// Calls of the CUDA twins that launch nothing, so that they need no GPU: ranges are all that they
// leave behind.
#include <vector>

#include "codec/codec_cuda.hpp"

int main() {
  using namespace mpress;
  using namespace mpress::codec::cuda;
  Spec szp, none;
  std::string error;
  if (!parse_spec("szp:abs=1e-3", szp, error) || !parse_spec("none", none, error)) return 2;
  const std::vector<EncodeSegment> segments(3, EncodeSegment{nullptr, 1000, nullptr, nullptr});
  const DecodeSegment payload{nullptr, 0, nullptr, 7, nullptr};
  const bool refused =
      encode(none, ElementType::f64, segments, nullptr, nullptr) == cudaErrorInvalidValue &&
      decode(none, ElementType::f32, {&payload, 1}, Combine::sum, nullptr, nullptr) ==
          cudaErrorInvalidValue &&
      add(none, ElementType::f32, {}, nullptr, nullptr) == cudaErrorInvalidValue;
  return refused && encode(szp, ElementType::f32, {}, nullptr, nullptr) == cudaSuccess ? 0 : 1;
}
