// The floating-point environment in which mpress computes.
//
// A program may round in other directions, flush denormal numbers, unmask traps, and look at the
// flags that its own arithmetic has raised. None of that may reach the arithmetic of mpress, and
// nothing of that arithmetic may reach the program. So each entry point that computes does so in a
// function that is called by compute(). MPI, handlers and operators of the program are never called
// there. docs/codecs.md, Floating-point environment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#if !defined(__x86_64__)
#include <cfenv>
#endif

namespace mpress {

/// How a thread rounds, and whether it flushes denormal numbers. Traps and flags are not part of
/// it.
class FloatModes {
 public:
  /// To nearest, ties to even; nothing is flushed.
  FloatModes() = default;

  /// Those of the calling thread.
  static FloatModes of_thread();

 private:
  friend class FloatScope;
#if defined(__x86_64__)
  std::uint32_t bits_ = 0;  ///< of MXCSR
#else
  std::optional<std::fenv_t> environment_;
#endif
};

namespace float_environment {

/// function(argument) with these modes, all traps masked. Traps, flags and modes are the caller's
/// again when it returns or throws. It is never inlined: compilers move arithmetic across an
/// instruction that sets modes, but not across a call of what they cannot see.
void call(FloatModes modes, void (*function)(void*), void* argument);

}  // namespace float_environment

/// Returns act(), computed with these modes.
template <class Act>
auto compute(FloatModes modes, Act&& act) {
  using Result = std::invoke_result_t<Act&>;
  static_assert(!std::is_reference_v<Result>);
  if constexpr (std::is_void_v<Result>) {
    float_environment::call(
        modes, [](void* given) { (*static_cast<std::remove_reference_t<Act>*>(given))(); },
        const_cast<void*>(static_cast<const void*>(std::addressof(act))));
  } else {
    struct Call {
      std::remove_reference_t<Act>& act;
      std::optional<Result> result = std::nullopt;
    } one{act};
    float_environment::call(
        modes,
        [](void* given) {
          auto& call = *static_cast<Call*>(given);
          call.result.emplace(call.act());
        },
        &one);
    return std::move(*one.result);
  }
}

/// The same with the default modes, which do not depend on the program.
template <class Act>
auto compute(Act&& act) {
  return compute(FloatModes(), std::forward<Act>(act));
}

}  // namespace mpress
