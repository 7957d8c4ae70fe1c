// The arguments of MPI's own call where mpress moves the long pairs.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "mpi/collectives/long_pairs.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::preload {

/// The program's, but for counts: of a long pair there is nothing. A: the blocking call's
/// parameters. A buffer's count, or its array of counts, follows the buffer.
template <typename... A>
class RestOfCall {
 public:
  /// `operands`: what the arguments tell.
  RestOfCall(const engine::LongPairs& pairs, const engine::Operands& operands, A... arguments)
      : arguments_(arguments...) {
    leave_out<1>(operands.send.reads, [&](int i) { return pairs.is_sent(i); }, send_counts_);
    leave_out<receive_at + 1>(
        operands.receive.writes, [&](int i) { return pairs.is_received(i); }, receive_counts_);
  }
  RestOfCall(const RestOfCall&) = delete;
  RestOfCall& operator=(const RestOfCall&) = delete;

  /// They live as long as this.
  const std::tuple<A...>& arguments() const { return arguments_; }

 private:
  template <std::size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<A...>>;
  using Count = std::remove_cv_t<std::remove_pointer_t<Argument<1>>>;

  static constexpr std::size_t receive_at = [] {
    constexpr bool is_buffer[] = {std::is_same_v<A, void*>...};
    std::size_t i = 0;
    while (!is_buffer[i]) ++i;
    return i;
  }();

  template <std::size_t at, typename IsLong>
  void leave_out(const engine::Blocks& blocks, IsLong is_long, std::vector<Count>& copy) {
    auto& argument = std::get<at>(arguments_);
    // Open MPI refuses neighbourhoods' calls whose two counts differ, also where one is nobody's.
    if constexpr (!std::is_pointer_v<Argument<at>>) {
      if (blocks.number() == 0) argument = 0;
    }
    for (int i = 0; i < blocks.number(); ++i) {
      if (!is_long(i)) continue;
      if constexpr (std::is_pointer_v<Argument<at>>) {
        if (copy.empty()) {
          copy.assign(argument, argument + blocks.number());
          argument = copy.data();
        }
        copy[static_cast<std::size_t>(i)] = 0;
      } else {
        argument = 0;
      }
    }
  }

  std::tuple<A...> arguments_;
  std::vector<Count> send_counts_;
  std::vector<Count> receive_counts_;
};

}  // namespace mpress::preload
