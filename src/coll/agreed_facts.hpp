// Facts as a team has agreed on them: the least and the greatest of its members' numbers, which one
// exchange of the greatest finds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coll/facts.hpp"

namespace mpress::engine {

class AgreedFacts {
 public:
  /// A member's contribution to the exchange: its numbers, then their complements.
  using Words = std::array<std::uint64_t, 2 * fact_count>;
  static Words words_of(const Facts& own) {
    Words words;
    for (std::size_t i = 0; i < fact_count; ++i) {
      words[i] = own.numbers()[i];
      words[fact_count + i] = ~own.numbers()[i];
    }
    return words;
  }

  AgreedFacts() = default;
  /// `greatest`: of each word, among all members.
  explicit AgreedFacts(const Words& greatest) {
    for (std::size_t i = 0; i < fact_count; ++i) {
      highest_.numbers()[i] = greatest[i];
      lowest_.numbers()[i] = ~greatest[fact_count + i];
    }
  }

  std::uint64_t lowest(Fact fact) const { return lowest_[fact]; }
  std::uint64_t highest(Fact fact) const { return highest_[fact]; }
  bool is_true_for_all(Fact fact) const { return lowest(fact) != 0; }
  bool is_true_for_any(Fact fact) const { return highest(fact) != 0; }
  bool differs(Fact fact) const { return lowest(fact) != highest(fact); }

 private:
  Facts lowest_, highest_;
};

}  // namespace mpress::engine
