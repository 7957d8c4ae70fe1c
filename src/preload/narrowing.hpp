// Calls with large counts for an MPI that has only those with ints: the arguments as ints, where
// they fit.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "mpi/staging/staged_call.hpp"

namespace mpress::preload {

/// Takes a call's arguments in their order. Arrays are the staged call's.
class Narrowing {
 public:
  Narrowing(engine::StagedCall& call, const engine::Operands& operands)
      : call_(call),
        send_entries_(operands.send_entries),
        receive_entries_(operands.receive_entries) {}

  template <typename To, typename From>
  To as(From argument) {
    if constexpr (std::is_same_v<To, From>) {
      if (std::is_same_v<To, void*>) receiving_ = true;
      return argument;
    } else if constexpr (std::is_integral_v<To>) {
      return narrow<To>(argument);
    } else if constexpr (std::is_same_v<To, const int*>) {
      const int entries = receiving_ ? receive_entries_ : send_entries_;
      if (entries == 0) return nullptr;
      int* const array = call_.new_array(static_cast<std::size_t>(entries));
      for (int i = 0; i < entries; ++i) array[i] = narrow<int>(argument[i]);
      return array;
    } else {
      // The one such parameter is a position, in and out.
      using Position = std::remove_pointer_t<To>;
      wide_position_ = argument;
      return &position_.template emplace<Position>(narrow<Position>(*argument));
    }
  }

  bool fits() const { return fits_; }

  void write_back() const {
    if (!wide_position_) return;
    std::visit([this](auto position) { *wide_position_ = position; }, position_);
  }

 private:
  template <typename To, typename Number>
  To narrow(Number number) {
    fits_ = fits_ && std::in_range<To>(number);
    return static_cast<To>(number);
  }

  engine::StagedCall& call_;
  const int send_entries_;
  const int receive_entries_;
  bool receiving_ = false;  ///< the arguments are those of the second buffer
  bool fits_ = true;
  std::variant<int, MPI_Aint> position_;
  MPI_Count* wide_position_ = nullptr;
};

/// MPI's call with ints, given large arguments.
template <typename... Ints, typename... Large>
int call_narrowed(Narrowing narrowing, int (*call)(Ints...), Large... arguments) {
  const std::tuple<Ints...> narrowed{narrowing.as<Ints>(arguments)...};
  if (!narrowing.fits()) return MPI_ERR_COUNT;
  const int code = std::apply(call, narrowed);
  narrowing.write_back();
  return code;
}

}  // namespace mpress::preload
