// An array whose size is known when it is made: on the stack while it is short.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

namespace mpress::engine {

template <typename T, std::size_t inline_size = 16>
class Scratch {
 public:
  explicit Scratch(std::size_t size) : size_(size) {
    if (size > inline_size) {
      heap_ = std::make_unique<T[]>(size);
    } else {
      std::fill_n(inline_.begin(), size, T{});
    }
  }
  T* data() { return heap_ ? heap_.get() : inline_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return heap_ ? heap_[i] : inline_[i]; }
  std::size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return heap_ ? heap_.get() : inline_.data(); }
  const T* end() const { return begin() + size_; }

 private:
  std::size_t size_;
  std::array<T, inline_size> inline_;
  std::unique_ptr<T[]> heap_;
};

}  // namespace mpress::engine
