// Choosing the algorithm of one call: the loop over the table (coll/algorithm.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coll/algorithm.hpp"
#include "coll/answer.hpp"
#include "coll/call.hpp"

namespace mpress::engine {

/// When an algorithm that a member has refused is offered again. All members keep the same.
class Attempts {
 public:
  /// Is the algorithm offered at this call? After a refusal at the 1st, 3rd, 6th, 11th, 20th ...
  /// call, the kth of them 2^k + k: such numbers meet every turn of a program that takes turns.
  bool next() {
    if (is_over_ || !has_failed_) return !is_over_;
    if (++calls_ < (std::uint64_t{1} << tries_) + tries_) return false;
    if (tries_ < most_tries) ++tries_;
    return true;
  }

  bool has_failed() const { return has_failed_; }
  /// Will it never be offered again?
  bool is_over() const { return is_over_; }

  void note(Answer answer) {
    if (answer == Answer::never) is_over_ = true;
    if (answer == Answer::accepted) calls_ = tries_ = 0;
    // A call that is not served yet has opened memory for the next one, which is offered at once.
    has_failed_ = answer != Answer::accepted && answer != Answer::not_yet;
  }

 private:
  static constexpr unsigned most_tries = 60;
  bool is_over_ = false;
  bool has_failed_ = false;
  std::uint64_t calls_ = 0;  ///< since the last that succeeded
  unsigned tries_ = 0;       ///< among those
};

/// By algorithm. A team has one of these for calls of like size.
using AttemptsOfTeam = std::array<Attempts, static_cast<std::size_t>(last_offered) + 1>;

/// A member has one for a call, and gives it the facts that all members agreed on; so all choose
/// alike.
class Selection {
 public:
  explicit Selection(AttemptsOfTeam& attempts) : attempts_(attempts) {}

  /// The call as members agreed on it; before begin().
  AgreedCall call;

  /// Chooses the first algorithm that applies.
  void begin() { choose(AlgorithmId{}); }

  AlgorithmId chosen() const { return chosen_; }

  /// Do members offer the chosen algorithm? Then conclude() or encode() goes on.
  bool is_offered() const { return algorithm(chosen_).is_offered(); }

  /// Returns true where all members accept: the choice is final. Else chooses the next algorithm.
  bool conclude(Answer answer);

  /// A member would rather encode its contribution: chooses an algorithm of blocks.
  void encode();

  /// Where by_mpi is chosen: why no other was.
  WhyNot why_by_mpi() const;

 private:
  void choose(AlgorithmId first);
  Attempts& attempts() { return attempts_[static_cast<std::size_t>(chosen_)]; }

  AttemptsOfTeam& attempts_;
  AlgorithmId chosen_ = AlgorithmId::by_mpi;
  Answer refusal_ = Answer::accepted;  ///< the last, at this call or before it
};

}  // namespace mpress::engine
