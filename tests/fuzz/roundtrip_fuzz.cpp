// Encodes the input as elements with the codec FUZZ_CODEC, at any alignment. All instruction sets
// must write the same bytes, and what comes back must keep the codec's promise.
#include <cmath>
#include <limits>
#include <utility>

#include "codec/zfp/format.hpp"
#include "input.hpp"

namespace mpress::fuzz {
namespace {

template <class T>
std::vector<T> values(const Bytes& bytes) {
  std::vector<T> x(bytes.size() / sizeof(T));
  if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

template <class T>
bool same_bits(T x, T y) {
  return std::memcmp(&x, &y, sizeof x) == 0;
}

/// Whether |x - y| <= bound in exact arithmetic: the difference is s + e exactly (Knuth's
/// two-sum), and rounding is monotone, so s decides unless it equals the bound.
bool within(double x, double y, double bound) {
  if (x < y) std::swap(x, y);
  const double s = x - y;
  const double t = s - x;
  const double e = (x - (s - t)) + (-y - t);
  return s < bound || (s == bound && !(e > 0));
}

/// szp: finite elements within the bound, all others as they were.
template <class T>
void check_bound(const std::vector<T>& before, const std::vector<T>& after, double bound) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    require(std::isfinite(before[i]) ? within(before[i], after[i], bound)
                                     : same_bits(before[i], after[i]));
  }
}

/// zfp: blocks that hold a NaN or an infinity as they were. At the highest rate the others differ
/// in the last few of their 32 (64) bit planes only.
template <class T>
void check_blocks(const std::vector<T>& before, const std::vector<T>& after, bool full_rate) {
  const double tolerance = sizeof(T) == 4 ? 0x1p-20 : 0x1p-48;
  for (std::size_t first = 0; first < before.size(); first += 4) {
    const std::size_t end = std::min(first + 4, before.size());
    bool finite = true;
    double largest = 0;
    for (std::size_t i = first; i < end; ++i) {
      finite = finite && std::isfinite(before[i]);
      largest = std::max(largest, std::fabs(static_cast<double>(before[i])));
    }
    for (std::size_t i = first; i < end; ++i) {
      if (!finite) {
        require(same_bits(before[i], after[i]));
      } else if (full_rate && largest < std::numeric_limits<T>::max() / 2) {
        const double least = std::numeric_limits<T>::denorm_min();
        require(std::fabs(static_cast<double>(before[i]) - static_cast<double>(after[i])) <=
                largest * tolerance + 4 * least);
      }
    }
  }
}

template <class T>
void check(const Spec& resolved, ElementType type, const Bytes& before, const Bytes& after) {
  if (resolved.codec == Codec::mpc) require(before == after);
  if (resolved.codec == Codec::szp) {
    check_bound(values<T>(before), values<T>(after), resolved.value);
  }
  if (resolved.codec == Codec::zfp) {
    const std::uint32_t bits = zfp_block_bits(resolved.value, type);
    check_blocks(values<T>(before), values<T>(after), bits == codec::zfp::max_block_bits(type));
  }
}

/// The rest of the input, several times over, so that short inputs fill units.
Bytes choose_elements(ElementType type, Input& in) {
  const std::size_t shift = in.take<std::uint8_t>() % 8;
  const std::size_t repeat = 1 + in.take<std::uint8_t>() % 32;
  const std::size_t period = in.size() / element_size(type) * element_size(type);
  Bytes elements(period * repeat, shift);
  for (std::size_t i = 0; i < repeat && period > 0; ++i) {
    std::memcpy(elements.data() + i * period, in.data(), period);
  }
  return elements;
}

void run(Input in) {
  const ElementType type = choose_type(in);
  const Spec spec = choose_spec(Codec::FUZZ_CODEC, type, in);
  const std::size_t shift = in.take<std::uint8_t>() % 8;
  const Bytes elements = choose_elements(type, in);
  const std::size_t count = elements.size() / element_size(type);
  Bytes payload(0, 0);
  bool any = false;
  on_every_isa([&] {
    const Spec resolved = codec::resolve(spec, type, elements.data(), count);
    Bytes encoded(codec::max_payload_bytes(spec, type, count), shift);
    const std::size_t bytes = codec::encode(resolved, type, elements.data(), count, encoded.data());
    require(bytes <= encoded.size());
    encoded.shrink(bytes);
    require(!any || encoded == payload);
    Bytes decoded(elements.size(), shift);
    require(codec::decode(spec, type, encoded.data(), bytes, decoded.data(), count) ==
            codec::Status::ok);
    if (type == ElementType::f32) {
      check<float>(resolved, type, elements, decoded);
    } else {
      check<double>(resolved, type, elements, decoded);
    }
    any = true;
    payload = std::move(encoded);
  });
}

}  // namespace
}  // namespace mpress::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mpress::fuzz::run({data, size});
  return 0;
}
