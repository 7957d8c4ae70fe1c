#include "coll/selection.hpp"

namespace mpress::engine {

void Selection::choose(AlgorithmId first) {
  chosen_ = first_that_applies(call, first);
  while (is_offered() && !attempts().next()) {
    refusal_ = attempts().is_over() ? Answer::never : Answer::not_now;
    chosen_ = first_that_applies(call, next(chosen_));
  }
}

bool Selection::conclude(Answer answer) {
  attempts().note(answer);
  if (answer == Answer::accepted) return true;
  refusal_ = answer;
  choose(next(chosen_));
  return false;
}

void Selection::encode() {
  call.encodes = true;
  choose(next(chosen_));
}

/// The last one in the table has the fewest conditions.
WhyNot Selection::why_by_mpi() const {
  if (refusal_ == Answer::not_yet) return "memory is being opened for the next such call";
  if (refusal_ == Answer::not_now) return "a member's GPU or buffer cannot take part";
  if (refusal_ == Answer::never) return "members share a GPU";
  WhyNot why = other_kind;
  for (AlgorithmId id{}; id != AlgorithmId::by_mpi; id = next(id)) {
    const WhyNot found = algorithm(id).why_not(call);
    if (found && found != other_kind) why = found;
  }
  return why;
}

}  // namespace mpress::engine
