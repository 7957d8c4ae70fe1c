// An array of counts or displacements, as calls of MPI's give them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mpress::engine {

/// An array of counts or displacements: of ints, or of the large forms' 64-bit numbers.
class Numbers {
 public:
  Numbers() = default;
  template <typename T>
  Numbers(const T* data) : data_(data), wide_(sizeof(T) == 8) {  // NOLINT: any array of numbers
    static_assert(std::is_integral_v<T>);
  }
  explicit operator bool() const { return data_ != nullptr; }
  std::int64_t operator[](int i) const {
    if (!wide_) return static_cast<const int*>(data_)[i];
    std::int64_t number;
    std::memcpy(&number, static_cast<const std::byte*>(data_) + 8 * static_cast<std::size_t>(i), 8);
    return number;
  }

 private:
  const void* data_ = nullptr;
  bool wide_ = false;
};

}  // namespace mpress::engine
