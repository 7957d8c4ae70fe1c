// What the header of a message says of where its data comes, as its link reads it. For everybody
// else that is a number.
#pragma once

#include <cstdint>

#include "link/list.hpp"

namespace mpress::link {

struct Route {
  std::uint32_t number =
      0;  ///< of the transfer, as its sender counts; by the channel: the tag of its blocks
  Kind kind = Kind::channel;
  std::uint32_t slot = 0;  ///< the first, of those of this reader

  constexpr Route() = default;
  constexpr Route(std::uint32_t number, Kind kind, std::uint32_t slot)
      : number(number), kind(kind), slot(slot) {}
  constexpr explicit Route(std::uint64_t word)
      : number(static_cast<std::uint32_t>(word)),
        kind(static_cast<Kind>(word >> kind_at & 3)),
        slot(static_cast<std::uint32_t>(word >> 32 & slots)) {}

  constexpr std::uint64_t word() const {
    return number | static_cast<std::uint64_t>(kind) << kind_at |
           static_cast<std::uint64_t>(slot & slots) << 32;
  }

 private:
  static constexpr int kind_at = 62;
  static constexpr std::uint32_t slots = (1u << 30) - 1;
};

}  // namespace mpress::link
