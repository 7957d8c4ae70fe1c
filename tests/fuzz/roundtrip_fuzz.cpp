// Encodes the input as elements with the codec FUZZ_CODEC, at any alignment, and checks what the
// codec promises of the decoded ones.
#include <cmath>

#include "input.hpp"

namespace mpress::fuzz {
namespace {

template <class T>
void check_bound(const std::uint8_t* before, const std::uint8_t* after, std::size_t count,
                 double bound) {
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;
    std::memcpy(&x, before + i * sizeof(T), sizeof(T));
    std::memcpy(&y, after + i * sizeof(T), sizeof(T));
    if (std::isfinite(x)) {
      require(std::fabs(static_cast<long double>(x) - y) <= bound);
    } else {
      require(std::memcmp(&x, &y, sizeof(T)) == 0);
    }
  }
}

void run(Input in) {
  const ElementType type = choose_type(in);
  const Spec spec = choose_spec(Codec::FUZZ_CODEC, type, in);
  const std::size_t shift = in.take<std::uint8_t>() % 8;
  const std::size_t repeat = 1 + in.take<std::uint8_t>() % 32;
  const std::size_t period = in.size() / element_size(type) * element_size(type);
  std::vector<std::uint8_t> memory(shift + period * repeat);
  for (std::size_t i = 0; i < repeat && period > 0; ++i) {
    std::memcpy(&memory[shift + i * period], in.data(), period);
  }
  const std::uint8_t* elements = memory.data() + shift;
  const std::size_t count = period * repeat / element_size(type);

  const Spec resolved = codec::resolve(spec, type, elements, count);
  std::vector<std::uint8_t> payload(codec::max_payload_bytes(spec, type, count));
  const std::size_t bytes = codec::encode(spec, type, elements, count, payload.data());
  require(bytes <= payload.size());
  payload.resize(bytes);
  payload.shrink_to_fit();
  std::vector<std::uint8_t> decoded(count * element_size(type));
  const Status status =
      codec::decode(spec, type, payload.data(), bytes, decoded.data(), count);
  require(status == Status::ok);
  if (spec.codec == Codec::mpc && count > 0) {
    require(std::memcmp(decoded.data(), elements, decoded.size()) == 0);
  }
  if (spec.codec == Codec::szp) {
    if (type == ElementType::f32) {
      check_bound<float>(elements, decoded.data(), count, resolved.value);
    } else {
      check_bound<double>(elements, decoded.data(), count, resolved.value);
    }
  }
}

}  // namespace
}  // namespace mpress::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mpress::fuzz::run({data, size});
  return 0;
}
