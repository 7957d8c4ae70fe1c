// The arguments of a collective call that is not over when it returns.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi/calls/calls.hpp"
#include "mpi/collectives/kept_call.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/objects/type_info.hpp"
#include "preload/rest_of_call.hpp"

namespace mpress::preload {

/// Copies of arrays, and of datatypes that are not MPI's own.
class KeptArguments {
 public:
  KeptArguments() = default;
  KeptArguments(const KeptArguments&) = delete;
  KeptArguments& operator=(const KeptArguments&) = delete;

  /// MPI does not look at all arguments: null where there are no entries.
  template <typename T>
  const T* array(const T* given, int entries) {
    if (entries == 0 || !given) return given;
    auto copy = std::make_shared<std::vector<T>>(given, given + entries);
    const T* const kept = copy->data();
    arrays_.push_back(std::move(copy));
    return kept;
  }

  MPI_Datatype type(MPI_Datatype given) {
    const auto known = mpi::type_info(given);
    if (!known || known->is_predefined) return given;
    return types_.emplace_back(given, known->is_predefined).get();
  }

 private:
  std::vector<std::shared_ptr<void>> arrays_;
  std::deque<mpi::KeptType> types_;
};

/// `describe`: the function of mpi/collectives/operands.hpp; `call_mpi`: makes MPI's non-blocking
/// or persistent call with the kept arguments; A: the blocking call's parameters, the last of which
/// is the communicator.
template <auto describe, auto call_mpi, typename... A>
class Kept final : public engine::KeptCall {
 public:
  /// `info`: of a persistent call, which MPI looks at when it makes it.
  Kept(const engine::Operands& given, MPI_Info info, A... arguments)
      : arguments_(arguments...), info_(info) {
    keep_arrays(given, std::index_sequence_for<A...>());
    keep_types(given);
    operands_ = described(arguments_);
    operands_.asked = given.asked;
    operands_.defaults = given.defaults;
    left_ = operands_;
  }

  void leave_out(const engine::LongPairs& pairs, MPI_Comm comm) override {
    if constexpr (!reduces) {
      std::apply([&](A... kept) { rest_.emplace(pairs, operands_, kept...); }, arguments_);
      left_ = described(on(comm, rest_->arguments()));
    }
  }

  int begin(engine::StagedCall& staged, MPI_Comm comm, MPI_Request* request) override {
    return std::apply([&](A... left) { return call_mpi(staged, left_, left..., info_, request); },
                      on(comm, left_arguments()));
  }

 private:
  using Arguments = std::tuple<A...>;
  template <std::size_t i>
  using Argument = std::tuple_element_t<i, Arguments>;

  /// Both buffers have one count and one type; such calls are served whole.
  static constexpr bool reduces = std::is_same_v<std::tuple_element_t<1, Arguments>, void*>;

  const Arguments& left_arguments() const {
    if constexpr (!reduces) {
      if (rest_) return rest_->arguments();
    }
    return arguments_;
  }

  static engine::Operands described(const Arguments& arguments) {
    return std::apply([](A... given) { return describe(given...); }, arguments);
  }

  static Arguments on(MPI_Comm comm, Arguments arguments) {
    std::get<sizeof...(A) - 1>(arguments) = comm;
    return arguments;
  }

  /// Where the buffer that is received to comes among the parameters.
  static constexpr std::size_t receive_at = [] {
    constexpr bool is_buffer[] = {std::is_same_v<A, void*>...};
    std::size_t i = 0;
    while (!is_buffer[i]) ++i;
    return i;
  }();
  static constexpr bool has_root =
      std::is_same_v<decltype(describe), decltype(&engine::bcast)> ||
      std::is_same_v<decltype(describe), decltype(&engine::gatherv)> ||
      std::is_same_v<decltype(describe), decltype(&engine::scatterv)> ||
      std::is_same_v<decltype(describe), decltype(&engine::gather)>;
  /// A type is the last that tells about its buffer.
  static constexpr std::size_t receive_type_at = sizeof...(A) - (has_root ? 3 : 2);
  static constexpr std::size_t send_type_at = receive_at > 0 ? receive_at - 1 : receive_type_at;

  template <std::size_t... i>
  void keep_arrays(const engine::Operands& given, std::index_sequence<i...>) {
    (keep_array<i>(i < receive_at ? given.send_entries : given.receive_entries), ...);
  }

  template <std::size_t i>
  void keep_array(int entries) {
    using T = Argument<i>;
    // Handles may be pointers, too, but not to what is constant.
    if constexpr (std::is_pointer_v<T> && !std::is_same_v<T, const void*> &&
                  std::is_const_v<std::remove_pointer_t<T>>) {
      std::get<i>(arguments_) = kept_.array(std::get<i>(arguments_), entries);
    }
  }

  /// Those of reductions that are kept are MPI's own.
  void keep_types(const engine::Operands& given) {
    if constexpr (!reduces) {
      if constexpr (receive_at > 0) keep_type<send_type_at>(given.send);
      keep_type<receive_type_at>(given.receive);
    }
  }

  /// A type counts only where there are items, and need not be one elsewhere; but some MPIs look at
  /// it, and the program may have freed it by then.
  template <std::size_t i>
  void keep_type(const engine::Operand& operand) {
    const engine::Blocks& blocks = operand.writes.number() > 0 ? operand.writes : operand.reads;
    const auto has_items = [&](int k) { return blocks[k].count > 0; };
    auto& argument = std::get<i>(arguments_);
    if constexpr (std::is_same_v<Argument<i>, const MPI_Datatype*>) {
      auto* const types = const_cast<MPI_Datatype*>(argument);
      for (int k = 0; k < blocks.number(); ++k) {
        types[k] = has_items(k) ? kept_.type(types[k]) : MPI_BYTE;
      }
    } else {
      int k = 0;
      while (k < blocks.number() && !has_items(k)) ++k;
      argument = k < blocks.number() ? kept_.type(argument) : MPI_BYTE;
    }
  }

  Arguments arguments_;
  const MPI_Info info_;
  KeptArguments kept_;
  struct Nothing {};
  std::conditional_t<reduces, Nothing, std::optional<RestOfCall<A...>>> rest_;
};

}  // namespace mpress::preload
