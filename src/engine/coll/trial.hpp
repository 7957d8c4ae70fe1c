// Whether MPI or mpress serves calls on device memory faster, where MPI takes such memory, too:
// some MPIs are as fast as the link between the devices then, and others take a hundred times as
// long.
//
// The first blocking calls of a kind go by turns to either. Then the members tell each other how
// long they took, and from then on the faster one has all calls of that kind.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "trace/record.hpp"

namespace mpress::engine {

/// Of calls of one kind on one communicator. Members make the same calls, so they are always at the
/// same point.
class Trial {
 public:
  enum class Next : unsigned char { mpi, mpress, compare };

  /// What is to be done with a call of this kind: to be asked in the order of calls.
  Next next(bool is_blocking) {
    if (is_decided_) return mpress_is_faster_ ? Next::mpress : Next::mpi;
    if (!is_blocking) return Next::mpi;  // which nobody times
    if (made_ == calls) return Next::compare;
    is_timed_ = true;
    return made_++ % 2 == 0 ? Next::mpi : Next::mpress;
  }

  /// Is the call that next() was asked about last to be timed?
  bool is_timed() const { return is_timed_; }

  void took(bool by_mpress, std::uint64_t ns) {
    is_timed_ = false;
    least_ns_[by_mpress] = std::min(least_ns_[by_mpress], ns);
  }

  /// The least that this rank's calls took, in nanoseconds. The slowest rank counts.
  std::uint64_t least_ns(bool by_mpress) const { return least_ns_[by_mpress]; }
  void decide(std::uint64_t mpi_ns, std::uint64_t mpress_ns) {
    is_decided_ = true;
    mpress_is_faster_ = mpress_ns < mpi_ns;
  }

 private:
  static constexpr unsigned calls = 6;  ///< of which the first two also open memory and links

  unsigned made_ = 0;
  bool is_timed_ = false;
  bool is_decided_ = false;
  bool mpress_is_faster_ = false;
  std::array<std::uint64_t, 2> least_ns_{UINT64_MAX, UINT64_MAX};
};

/// Of one communicator.
class Trials {
 public:
  /// Of calls with blocks of about `bytes` bytes; 0 where members do not know of each other's.
  Trial& of(trace::Op op, std::size_t bytes) { return all_[{op, std::bit_width(bytes)}]; }

 private:
  std::map<std::pair<trace::Op, int>, Trial> all_;
};

/// Times a call from begin() to its end of life.
class TrialClock {
 public:
  TrialClock() = default;
  TrialClock(const TrialClock&) = delete;
  TrialClock& operator=(const TrialClock&) = delete;
  ~TrialClock() {
    if (trial_) trial_->took(by_mpress_, trace::now_ns() - begin_ns_);
  }

  void begin(Trial& trial, bool by_mpress) {
    trial_ = &trial;
    by_mpress_ = by_mpress;
    begin_ns_ = trace::now_ns();
  }

 private:
  Trial* trial_ = nullptr;
  bool by_mpress_ = false;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace mpress::engine
