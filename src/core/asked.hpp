// What a call of mpress's own interface asks for itself (src/api). It rules over its
// communicator's hints and the environment.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "codec/spec.hpp"

namespace mpress::engine {

class StreamOrder;

/// What a call tells of itself once it is over.
struct Outcome {
  int is_served = 0;  ///< not 0: mpress moved its data, or some of it; else MPI did
  /// On the error of each finite element of the result, absolute: 0 where nothing was lost, NaN
  /// where mpress does not know one.
  double bound = 0;

  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  /// A part of the call is over, that mpress moved.
  void add(double part) {
    is_served = 1;
    bound = looser(bound, part);
  }

  /// The greater of two bounds. Neither is below 0, so their bits are in their order, and those of
  /// NaNs beyond: without a comparison of numbers, which could trap.
  static double looser(double a, double b) {
    return std::bit_cast<double>(
        std::max(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)));
  }
};

/// A stream of the program's (a cudaStream_t), and the device of the buffers that it orders.
struct ProgramStream {
  void* handle;
  int device;

  bool operator==(const ProgramStream&) const = default;
};

/// Of a call that MPI serves alone nothing is asked. In collective calls all members ask, or none
/// does; their specs may differ where data is moved alone.
struct Asked {
  std::optional<Spec> spec;    ///< empty: the communicator's
  bool same_bits = false;      ///< a lossy broadcast's root gets what the others get
  Outcome* outcome = nullptr;  ///< where to tell it; outlives the call
  /// Set: its place in a stream of the program's, which has still to be waited for. The first call
  /// that is asked so takes it: handlers of the program's may make others meanwhile.
  mutable std::shared_ptr<StreamOrder> order = nullptr;
  bool names_stream = false;  ///< the program does, and may learn what becomes of it
  std::optional<ProgramStream> stream = std::nullopt;  ///< whatever has become of `order`

  /// The same on all members whose specs are the same.
  std::uint64_t hash() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : spec ? to_string(*spec) : std::string("-")) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
  }
};

/// While it lives, calls of MPI's that this thread enters are asked so. Operations that proceed in
/// them are not: they know their own.
class Asking {
 public:
  explicit Asking(const Asked& asked) : asked_(asked), outer_(innermost_) { innermost_ = this; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() { innermost_ = outer_; }

  /// For entry points alone.
  static std::optional<Asked> take() {
    if (!innermost_) return std::nullopt;
    Asked taken = innermost_->asked_;
    innermost_->asked_.order.reset();
    return taken;
  }
  static const Asked* innermost() { return innermost_ ? &innermost_->asked_ : nullptr; }

  /// act(asked) for each that this thread is in.
  template <typename Act>
  static void for_each(const Act& act) {
    for (const Asking* one = innermost_; one; one = one->outer_) act(one->asked_);
  }

 private:
  inline static thread_local const Asking* innermost_ = nullptr;
  const Asked& asked_;
  const Asking* const outer_;
};

/// For entry points of messages.
inline Outcome* asked_outcome() {
  const Asked* const asked = Asking::innermost();
  return asked ? asked->outcome : nullptr;
}
inline std::optional<Spec> asked_spec() {
  const Asked* const asked = Asking::innermost();
  return asked ? asked->spec : std::nullopt;
}

}  // namespace mpress::engine
