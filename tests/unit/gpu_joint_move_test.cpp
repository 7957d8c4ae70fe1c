// Blocks that several members bring each other, by kernels that wait for each other: bit for bit,
// and nothing beside them. All members are of this process, on one device, each with a queue of its
// own. On the library given as the first argument, or the simulated one.
//
//   gpu_joint_move_test [LIBRARY]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint_move.hpp"
#include "gpu/loaded_gpu.hpp"
#include "gpu_memory.hpp"
#include "queues.hpp"

using namespace mpress;
using gpu::JointMove;
using gpu::Place;

namespace layout = gpu::joint_move;

namespace {

/// Bytes from a member to another; what a member has for itself stays.
using Lengths = std::vector<std::vector<std::size_t>>;

std::size_t longest(const Lengths& lengths) {
  std::size_t longest = 0;
  for (const auto& row : lengths) {
    longest = std::max(longest, *std::max_element(row.begin(), row.end()));
  }
  return longest;
}

enum class How { by_flags, in_lines, shared };

class Members {
 public:
  /// `most`: bytes of a block. Some of the memory, which is the device's or the host's, has room
  /// for more.
  Members(Place place, unsigned number, std::size_t most)
      : has_lines_(place == Place::device),
        most_(layout::room_for(most)),
        noise_(noise(number * pitch() + most_skip, 7)) {
    for (unsigned i = 0; i < number; ++i) {
      queues_.push_back(gpu::gpu()->open_queue(device, gpu::Priority::first));
      rooms_.push_back(most_ << (i % 2));
      const std::size_t bytes = layout::memory_bytes(number, rooms_[i], has_lines_);
      CHECK(layout::room_in(number, bytes, has_lines_) == rooms_[i]);
      memory_.push_back(std::make_unique<Block>(place, bytes));
      out_.push_back(std::make_unique<Block>(Place::device, number * pitch()));
      in_.push_back(std::make_unique<Block>(Place::device, number * pitch()));
      undone_.push_back(std::make_unique<Block>(Place::pinned, 64));
      at_.push_back(memory_.back()->data);
      const std::vector<std::byte> zeros(layout::cleared_bytes(number, has_lines_));
      put(*queues_[i], at_[i], zeros.data(), zeros.size());
    }
  }
  ~Members() {
    for (const auto& queue : queues_) queue->drain();
  }

  unsigned number() const { return static_cast<unsigned>(queues_.size()); }
  std::uint32_t again() const { return again_; }

  /// `skew`: bytes in front of blocks; `late`: a member that comes when the others have given up.
  void move(const Lengths& lengths, std::size_t skew = 0, unsigned late = 0) {
    move_as(lengths, skew, late, How::by_flags);
    if (has_lines_ && longest(lengths) <= layout::most_in_lines(number())) {
      move_as(lengths, skew, late, How::in_lines);
    }
    for (unsigned i = 0; i < number(); ++i) {
      if (std::adjacent_find(lengths[i].begin(), lengths[i].end(), std::not_equal_to{}) !=
          lengths[i].end()) {
        return;
      }
    }
    move_as(lengths, skew, late, How::shared);
  }

 private:
  /// `is_shared`: what a member sends is the same for all.
  void move_as(const Lengths& lengths, std::size_t skew, unsigned late, How how) {
    const bool is_shared = how == How::shared;
    std::vector<std::vector<std::byte>> brought;
    const std::vector<std::byte> blank(number() * pitch(), std::byte{0x5A});
    for (unsigned i = 0; i < number(); ++i) {
      // Cut of the same noise, as that takes long to make.
      const auto first = noise_.begin() + static_cast<std::ptrdiff_t>(random_() % most_skip);
      brought.emplace_back(first, first + static_cast<std::ptrdiff_t>(blank.size()));
      put(*queues_[i], out_[i]->data, brought[i].data(), blank.size());
      put(*queues_[i], in_[i]->data, blank.data(), blank.size());
    }
    ++call_;
    call_jointly(
        queues_, late, [&](unsigned i, bool again) { return give(lengths, skew, i, how, again); },
        [&](unsigned i) { return load(undone(i)) != 0; });
    for (unsigned i = 0; i < number(); ++i) {
      std::vector<std::byte> expected = blank;
      for (unsigned from = 0; from < number(); ++from) {
        std::copy_n(brought[from].begin() +
                        static_cast<std::ptrdiff_t>((is_shared ? 0 : i * pitch()) + skew),
                    lengths[from][i],
                    expected.begin() + static_cast<std::ptrdiff_t>(from * pitch() + skew));
      }
      CHECK(bytes_of(*queues_[i], in_[i]->data, blank.size()) == expected);
    }
  }

  std::size_t pitch() const { return most_ + 256; }
  std::uint32_t& undone(unsigned i) const {
    return *reinterpret_cast<std::uint32_t*>(undone_[i]->data);
  }

  Event give(const Lengths& lengths, std::size_t skew, unsigned i, How how, bool again) {
    const bool is_shared = how == How::shared;
    undone(i) = 0;
    again_ += again;
    std::vector<JointMove::Outgoing> sends;
    std::vector<JointMove::Incoming> receives;
    for (unsigned other = 0; other < number(); ++other) {
      sends.push_back(
          {out_[i]->data + (is_shared ? 0 : other * pitch()) + skew, lengths[i][other]});
      receives.push_back({in_[i]->data + other * pitch() + skew, lengths[other][i]});
    }
    return queues_[i]->collectives().move_jointly({at_, rooms_, how == How::in_lines, has_lines_,
                                                   is_shared, i, call_, sends, receives, again,
                                                   &undone(i)});
  }

  static constexpr std::size_t most_skip = 1 << 16;
  const bool has_lines_;
  const std::size_t most_;
  std::vector<std::byte> noise_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Block>> memory_, out_, in_, undone_;
  std::vector<std::byte*> at_;
  std::vector<std::uint64_t> rooms_;
  std::uint32_t call_ = 0;
  std::uint32_t again_ = 0;
  std::mt19937 random_{3};
};

Lengths all_alike(unsigned members, std::size_t bytes) {
  return Lengths(members, std::vector<std::size_t>(members, bytes));
}

/// All of one; all to one.
Lengths of_one(unsigned members, unsigned from, std::size_t bytes) {
  Lengths lengths = all_alike(members, 0);
  lengths[from].assign(members, bytes);
  return lengths;
}
Lengths to_one(unsigned members, unsigned to, std::size_t bytes) {
  Lengths lengths = all_alike(members, 0);
  for (auto& row : lengths) row[to] = bytes;
  return lengths;
}

void all_patterns(Place place, unsigned number, std::initializer_list<std::size_t> lengths) {
  Members members(place, number, 130'000);
  for (const std::size_t bytes : lengths) {
    members.move(all_alike(number, bytes));
    members.move(all_alike(number, bytes), 4);
    members.move(all_alike(number, bytes), 1);
    members.move(of_one(number, number - 1, bytes));
    members.move(to_one(number, 1, bytes));
  }
}

/// Also none, and as many blocks as a kernel has.
void all_lengths(Place place, int moves) {
  Members members(place, 4, 2 << 20);
  std::mt19937 random(11);
  for (int i = 0; i < moves; ++i) {
    const std::size_t most = i % 2 == 0 ? 2 << 20 : layout::most_in_lines(4);
    Lengths lengths = all_alike(4, 0);
    for (auto& row : lengths) {
      for (std::size_t& bytes : row) {
        if (random() % 4 > 0) bytes = random() % (random() % 2 == 0 ? 500 : most + 1);
      }
    }
    members.move(lengths, i % 3 == 0 ? 16 : i % 3 * 4);
  }
}

/// Kernels give up, and go on where they were.
void late_members(Place place) {
  Members members(place, 3, 1 << 20);
  for (const std::size_t bytes : {100, 1 << 20}) {
    for (unsigned late = 1; late < 3; ++late) members.move(all_alike(3, bytes), 0, late);
  }
  CHECK(members.again() > 0);
}

}  // namespace

int main(int argc, char** argv) {
  gpu::choose(argc > 1 ? argv[1] : MPRESS_SIMULATED_GPU);
  if (!gpu::gpu()) {
    std::fprintf(stderr, "%s\n", gpu::why_not().c_str());
    return 2;
  }
  for (const Place place : {Place::device, Place::pinned}) {
    all_patterns(place, 3, {1, 3, 12, 16, 255, 4096, 16'384, 16'385, 100'001, 130'000});
    all_lengths(place, place == Place::device ? 12 : 5);
    late_members(place);
  }
  for (const unsigned number : {2u, 8u})
    all_patterns(Place::device, number, {3, 4096, 16'385, 130'000});
  return check::failures != 0;
}
