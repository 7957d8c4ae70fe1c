// What the fuzz targets share: an input taken apart into choices, buffers without slack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/codec.hpp"
#include "codec/isa.hpp"

namespace mpress::fuzz {

/// Ends the run with a finding.
inline void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  /// The next bytes as a number; zeros where the input has ended.
  template <class T>
  T take() {
    T value{};
    const std::size_t bytes = std::min(sizeof value, size_);
    if (bytes > 0) std::memcpy(&value, data_, bytes);
    data_ += bytes, size_ -= bytes;
    return value;
  }

  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

/// Bytes `shift` off any alignment, at the very end of their heap block: the address sanitizer
/// sees one byte too many.
class Bytes {
 public:
  Bytes(std::size_t size, std::size_t shift) : shift_(shift), memory_(shift + size) {}

  std::uint8_t* data() { return memory_.data() + shift_; }
  const std::uint8_t* data() const { return memory_.data() + shift_; }
  std::size_t size() const { return memory_.size() - shift_; }

  /// Gives up what lies behind `size`, and the memory with it.
  void shrink(std::size_t size) {
    memory_.resize(shift_ + size);
    memory_.shrink_to_fit();
  }

  /// Equal size and contents.
  bool operator==(const Bytes& other) const {
    return std::equal(data(), data() + size(), other.data(), other.data() + other.size());
  }

 private:
  std::size_t shift_;
  std::vector<std::uint8_t> memory_;
};

/// Calls `f` once for each instruction set that this CPU has.
template <class F>
void on_every_isa(F f) {
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (set_host_isa(isa)) f();
  }
}

inline ElementType choose_type(Input& in) {
  return in.take<std::uint8_t>() % 2 ? ElementType::f64 : ElementType::f32;
}

/// A spec of the codec, valid for the type.
inline Spec choose_spec(Codec codec, ElementType type, Input& in) {
  Spec spec;
  spec.codec = codec;
  const auto choice = in.take<std::uint16_t>();
  switch (codec) {
    case Codec::mpc: spec.dim = static_cast<std::uint8_t>(choice % 33); break;
    case Codec::zfp: {
      const unsigned least = type == ElementType::f32 ? 9 : 12;
      const unsigned most = type == ElementType::f32 ? 128 : 256;
      spec.value = (least + choice % (most - least + 1)) / 4.0;
      break;
    }
    case Codec::szp:
      spec.bound = choice & 1 ? Bound::rel : Bound::abs;
      spec.mode = choice & 2 ? Mode::dense : Mode::fast;
      spec.value = in.take<double>();
      if (!(spec.value > 0 && spec.value <= 1e300)) spec.value = 1e-3;
      break;
    case Codec::none:
    case Codec::automatic: break;
  }
  return spec;
}

}  // namespace mpress::fuzz
