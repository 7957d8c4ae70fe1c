// Members of what kernels do together that wait for each other: all of this process, on one device,
// each with a queue of its own, with memory that all reach, and with data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "codec/element.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "queues.hpp"

namespace mpress {

template <class T>
constexpr ElementType type_of = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;

class JointMembers {
 public:
  unsigned number() const { return static_cast<unsigned>(queues_.size()); }
  std::uint32_t again() const { return again_; }

 protected:
  /// For vectors of up to `most` bytes.
  explicit JointMembers(std::size_t most) : most_(most) {}
  JointMembers(const JointMembers&) = delete;
  JointMembers& operator=(const JointMembers&) = delete;
  ~JointMembers() {
    for (const auto& queue : queues_) queue->drain();
  }

  /// One more, with `room` bytes of joint memory, of which the first `cleared` are zero, and with
  /// `words` bytes that its kernel writes for the host.
  void add(gpu::Place place, std::size_t room, std::size_t cleared, std::size_t words) {
    queues_.push_back(gpu::gpu()->open_queue(device, gpu::Priority::first));
    memory_.push_back(std::make_unique<Block>(place, room));
    data_.push_back(std::make_unique<Block>(gpu::Place::device, 2 * most_ + 4096));
    words_.push_back(std::make_unique<Block>(gpu::Place::pinned, words));
    at_.push_back(memory_.back()->data);
    const std::vector<std::byte> zeros(cleared);
    put(*queues_.back(), at_.back(), zeros.data(), zeros.size());
  }

  template <class Word>
  Word& word(unsigned i) const {
    return *reinterpret_cast<Word*>(words_[i]->data);
  }

  /// All data is cut from the same noise, as that takes long to make.
  const double* cut_of_noise(std::size_t count) {
    while (noise_.size() < count + most_skip) noise_.push_back(uniform_(random_));
    return noise_.data() + random_() % most_skip;
  }

  /// Where a member's input and result lie, as a case has `skew` and `in_place`.
  template <class Case>
  std::byte* input(unsigned i, const Case& one, std::size_t width) const {
    return data_[i]->data + one.skew * width;
  }
  template <class Case>
  std::byte* out(unsigned i, const Case& one, std::size_t width) const {
    return one.in_place ? input(i, one, width)
                        : data_[i]->data + most_ + 2048 + 3 * one.skew * width;
  }

  static constexpr std::size_t most_skip = 1 << 12;
  const std::size_t most_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::byte*> at_;  ///< joint memory, by member
  std::uint32_t call_ = 0;
  std::uint32_t again_ = 0;
  std::mt19937 random_{5};

 private:
  std::vector<std::unique_ptr<Block>> memory_, data_, words_;
  std::vector<double> noise_;
  std::uniform_real_distribution<double> uniform_{-2, 2};
};

}  // namespace mpress
